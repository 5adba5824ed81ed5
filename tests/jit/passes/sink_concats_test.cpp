#include "jit/passes/sink_concats.h"

#include "nitinol.h"
#include "tests/jit/calls.h"
#include "tests/jit/passes/pass_text.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

using namespace nitinol;
using namespace nitinol::test;

namespace {

std::string in_pieces(std::string_view text) {
  return after_cleaned(jit::sink_concats, text);
}

const std::string two_parts = "a: f32[2, 30] = input; b: f32[2, 10] = input; ";
const std::string side_by_side = "c: f32[2, 40] = concat a b axis=1; ";

void stays_whole(const std::string& text) {
  CHECK(in_pieces(text) == text);
}

}  // namespace

TEST_CASE("sink_concats computes pieces and joins what they become", "[jit][pass]") {
  CHECK(in_pieces(two_parts + side_by_side + "y: f32[2, 40] = tanh c; return y") ==
        two_parts +
            "c: f32[2, 30] = tanh a; d: f32[2, 10] = tanh b; e: f32[2, 40] = concat c d axis=1; "
            "return e");
  // Numbers, what is broadcast along the axis, parts of what lies in memory, and several readers.
  CHECK(
      in_pieces(two_parts + "n: f32[] = input; r: f32[2, 1] = input; w: f32[40] = input; " +
                side_by_side +
                "g: bool[2, 40] = gt c n; m: f32[2, 40] = mul c r; s: f32[2, 40] = add m w; y: "
                "f32[2, 40] = where g c s; return y") ==
      two_parts +
          "c: f32[] = input; d: f32[2, 1] = input; e: f32[40] = input; f: bool[2, 30] = gt a c; g: "
          "bool[2, 10] = gt b c; h: f32[2, 30] = mul a d; i: f32[2, 10] = mul b d; j: f32[30] = "
          "slice e starts=[0] sizes=[30] steps=[1]; k: f32[2, 30] = add h j; l: f32[10] = slice e "
          "starts=[30] sizes=[10] steps=[1]; m: f32[2, 10] = add i l; n: f32[2, 30] = where f a k; "
          "o: f32[2, 10] = where g b m; p: f32[2, 40] = concat n o axis=1; return p");
  // What broadcasts the pieces.
  CHECK(in_pieces("a: f32[30] = input; b: f32[10] = input; x: f32[4, 40] = input; c: f32[40] = "
                  "concat a b axis=0; y: f32[4, 40] = add c x; return y") ==
        "a: f32[30] = input; b: f32[10] = input; c: f32[4, 40] = input; d: f32[4, 30] = slice c "
        "starts=[0, 0] sizes=[4, 30] steps=[1, 1]; e: f32[4, 30] = add a d; f: f32[4, 10] = slice "
        "c starts=[0, 30] sizes=[4, 10] steps=[1, 1]; g: f32[4, 10] = add b f; h: f32[4, 40] = "
        "concat e g axis=1; return h");
  // A piece of narrow rows, if it is a small part.
  CHECK(in_pieces("a: f32[2, 5] = input; b: f32[2, 35] = input; c: f32[2, 40] = concat a b axis=1; "
                  "y: f32[2, 40] = tanh c; return y") ==
        "a: f32[2, 5] = input; b: f32[2, 35] = input; c: f32[2, 5] = tanh a; d: f32[2, 35] = tanh "
        "b; e: f32[2, 40] = concat c d axis=1; return e");
  // What other operations make of memory.
  CHECK(in_pieces(two_parts + "x: f32[40] = input; t: f32[40] = tanh x; " + side_by_side +
                  "y: f32[2, 40] = add c t; return y") ==
        two_parts +
            "c: f32[40] = input; d: f32[30] = slice c starts=[0] sizes=[30] steps=[1]; "
            "e: f32[30] = tanh d; f: f32[2, 30] = add a e; "
            "g: f32[10] = slice c starts=[30] sizes=[10] steps=[1]; h: f32[10] = tanh g; "
            "i: f32[2, 10] = add b h; j: f32[2, 40] = concat f i axis=1; return j");
  // Another concat, whose pieces have other sizes: parts of them, and pieces of pieces.
  CHECK(in_pieces(two_parts + "v: f32[2, 20] = input; w: f32[2, 20] = input; " + side_by_side +
                  "d: f32[2, 40] = concat v w axis=1; y: f32[2, 40] = add c d; return y") ==
        two_parts +
            "c: f32[2, 20] = input; d: f32[2, 20] = input; "
            "e: f32[2, 10] = slice d starts=[0, 0] sizes=[2, 10] steps=[1, 1]; "
            "f: f32[2, 20] = slice a starts=[0, 0] sizes=[2, 20] steps=[1, 1]; "
            "g: f32[2, 20] = add f c; "
            "h: f32[2, 10] = slice a starts=[0, 20] sizes=[2, 10] steps=[1, 1]; "
            "i: f32[2, 10] = add h e; j: f32[2, 30] = concat g i axis=1; "
            "k: f32[2, 10] = slice d starts=[0, 10] sizes=[2, 10] steps=[1, 1]; "
            "l: f32[2, 10] = add b k; m: f32[2, 40] = concat j l axis=1; return m");
  // A concat of what is computed, which others read, too: parts of what is there.
  CHECK(in_pieces(two_parts + "v: f32[2, 20] = input; e: f32[2, 20] = exp v; " + side_by_side +
                  "d: f32[2, 40] = concat e v axis=1; y: f32[2, 40] = add c d; return y d") ==
        two_parts +
            "c: f32[2, 20] = input; d: f32[2, 20] = exp c; e: f32[2, 40] = concat d c axis=1; "
            "f: f32[2, 30] = slice e starts=[0, 0] sizes=[2, 30] steps=[1, 1]; "
            "g: f32[2, 30] = add a f; "
            "h: f32[2, 10] = slice e starts=[0, 30] sizes=[2, 10] steps=[1, 1]; "
            "i: f32[2, 10] = add b h; j: f32[2, 40] = concat g i axis=1; return j e");
  // Views that leave the axis alone; the reshape behind it is of the result.
  CHECK(in_pieces(two_parts + side_by_side +
                  "r: f32[2, 1, 40] = reshape c shape=[2, 1, 40]; e: f32[2, 5, 40] = expand r "
                  "shape=[2, 5, 40]; p: f32[40, 2, 5] = permute e axes=[2, 0, 1]; k: f32[40, 2, 5] "
                  "= copy p; y: f32[400] = reshape k shape=[400]; return y") ==
        two_parts +
            "c: f32[2, 1, 30] = reshape a shape=[2, 1, 30]; d: f32[2, 1, 10] = reshape b shape=[2, "
            "1, 10]; e: f32[2, 5, 30] = expand c shape=[2, 5, 30]; f: f32[2, 5, 10] = expand d "
            "shape=[2, 5, 10]; g: f32[30, 2, 5] = permute e axes=[2, 0, 1]; h: f32[10, 2, 5] = "
            "permute f axes=[2, 0, 1]; i: f32[30, 2, 5] = copy g; j: f32[10, 2, 5] = copy h; k: "
            "f32[40, 2, 5] = concat i j axis=0; l: f32[400] = reshape k shape=[400]; return l");
}

TEST_CASE("sink_concats leaves what would be written more often", "[jit][pass]") {
  const std::string same = two_parts + side_by_side;
  stays_whole(same + "return c");
  // The concat is read by others; two values are; a sum reads it from registers; another concat.
  stays_whole(same + "d: f32[2, 40] = tanh c; return c d");
  stays_whole(same + "d: f32[2, 40] = tanh c; e: f32[2, 40] = exp c; return d e");
  stays_whole(same + "d: f32[2, 40] = tanh c; e: f32[2] = sum d axes=[1] keepdims=false; return e");
  stays_whole(same + "d: f32[2, 40] = tanh c; e: f32[2, 80] = concat d d axis=1; return e");
  // Views that take the axis apart; operands that a kernel makes for others, or by
  // a reduction.
  stays_whole(same +
              "d: f32[2, 2, 20] = reshape c shape=[2, 2, 20]; e: f32[2, 2, 20] = tanh d; return e");
  stays_whole(two_parts +
              "c: f32[2, 40] = input; d: f32[2, 40] = tanh c; e: f32[2, 40] = concat a b axis=1; "
              "f: f32[2, 40] = add d e; return f d");
  stays_whole(same + "d: f32[40, 2] = reshape c shape=[40, 2]; e: f32[40, 2] = tanh d; return e");
  stays_whole(two_parts +
              "c: f32[2, 40, 2] = input; d: f32[2, 40] = sum c axes=[2] keepdims=false; "
              "e: f32[2, 40] = exp d; f: f32[2, 40] = concat a b axis=1; g: f32[2, 40] = add e f; "
              "return g");
  // Narrow rows, which fill no vector.
  stays_whole(
      "a: f32[2, 6] = input; b: f32[2, 34] = input; c: f32[2, 40] = concat a b axis=1; d: f32[2, "
      "40] = tanh c; return d");
  // Nothing along the axis, and one piece.
  stays_whole(
      "a: f32[2, 30] = input; b: f32[2, 0] = input; c: f32[2, 30] = concat a b axis=1; d: f32[2, "
      "30] = tanh c; return d");
  stays_whole(
      "a: f32[2, 30] = input; b: f32[2, 30] = concat a axis=1; c: f32[2, 30] = tanh b; return c");
}

TEST_CASE("sink_concats goes a few operations up, however many there are", "[jit][pass]") {
  std::string chain =
      "a: f32[2, 10] = input; b: f32[2, 30] = input; w: f32[2, 20] = input; "
      "x0: f32[2, 20] = input; ";
  constexpr int length = 30000;
  for (int i = 0; i < length; ++i) chain += fmt::format("x{}: f32[2, 20] = tanh x{}; ", i + 1, i);
  const std::string made =
      in_pieces(chain + fmt::format("c: f32[2, 40] = concat a b axis=1; d: f32[2, 40] = concat x{} "
                                    "w axis=1; y: f32[2, 40] = add c d; return y",
                                    length));
  const auto count = [&](std::string_view word) {
    int found = 0;
    for (auto at = made.find(word); at != std::string::npos; at = made.find(word, at + 1)) ++found;
    return found;
  };
  CHECK(count(" add ") == 3);  // of a, and of two parts of b
  CHECK(count(" tanh ") > length);
  CHECK(count(" tanh ") < length + 8);
}

TEST_CASE("what is made of joined tensors is one write", "[jit][pass]") {
  const auto rolled = [](const Tensor& x) -> Tensor {
    const Tensor y = tile(roll(x, {30}, {1}), {2, 3});
    return cumsum(where(y > 0, y, y * 0.1F), 1);
  };
  check_end_to_end("sink_concats", rolled, randn({5, 80}));
  // Rotary positions: halves change places, and one is turned round.
  const Tensor angles = randn({6, 32}), weight = randn({32, 4});
  const auto turned = [&](const Tensor& x) -> Tensor {
    const Tensor first = slice(x, 1, {0, 16}), second = slice(x, 1, {16, 32});
    return matmul(x * cos(angles) + concat({-second, first}, 1) * sin(angles), weight);
  };
  check_end_to_end("sink_concats", turned, randn({6, 32}));
  const auto plan = [](const auto& f, const Tensor& x) {
    const auto g = compile(f, {.check = Check::never});
    for (int call = 0; call < 3; ++call) CHECK(same_bits(g(x), f(x)));
    return g.explain().signatures.at(0).plan;
  };
  const auto written = [&](const auto& f, const Tensor& x) {
    std::size_t bytes = 0;
    for (const StepReport& step : plan(f, x).steps) bytes += step.bytes_written;
    return bytes;
  };
  // Differences of neighbours: each place is written once, of nine kinds.
  const auto spread = [](const Tensor& x) -> Tensor {
    return roll(x, {1}, {0}) + roll(x, {-1}, {0}) + roll(x, {1}, {1}) + roll(x, {-1}, {1}) - 4 * x;
  };
  CHECK(written(spread, randn({20, 30})) == sizeof(float) * 20 * 30);
  CHECK(plan(spread, randn({20, 30})).arena_bytes == 0);
  // Pieces of pieces, across the other axis, one of them a copy.
  const auto nested = [](const Tensor& x) -> Tensor {
    const Tensor left = concat({exp(x), x}, 0), right = concat({x + 1, x * 2}, 0);
    return concat({tanh(concat({left, right}, 1)), concat({x, x}, 1)}, 0);
  };
  CHECK(written(nested, randn({10, 12})) == sizeof(float) * 30 * 24);
  CHECK(plan(nested, randn({10, 12})).arena_bytes == 0);
  const Tensor x = randn({100, 200});
  const std::size_t with = written(rolled, x);
  const WithoutPasses off({"sink_concats"});
  CHECK(written(rolled, x) - with == sizeof(float) * 100 * 200);
}
