#include "jit/passes/sink_concats.h"

#include "nitinol.h"
#include "tests/jit/calls.h"
#include "tests/jit/passes/pass_text.h"

using namespace nitinol;
using namespace nitinol::test;

namespace {

std::string in_pieces(std::string_view text) {
  return after_cleaned(jit::sink_concats, text);
}

const std::string two_parts = "a: f32[2, 3] = input; b: f32[2, 1] = input; ";
const std::string side_by_side = "c: f32[2, 4] = concat a b axis=1; ";

void stays_whole(const std::string& text) {
  CHECK(in_pieces(text) == text);
}

}  // namespace

TEST_CASE("sink_concats computes pieces and joins what they become", "[jit][pass]") {
  CHECK(in_pieces(two_parts + side_by_side + "y: f32[2, 4] = tanh c; return y") ==
        two_parts +
            "c: f32[2, 3] = tanh a; d: f32[2, 1] = tanh b; e: f32[2, 4] = concat c d axis=1; "
            "return e");
  // Numbers, what is broadcast along the axis, parts of what lies in memory, and several readers.
  CHECK(in_pieces(two_parts + "n: f32[] = input; r: f32[2, 1] = input; w: f32[4] = input; " +
                  side_by_side +
                  "g: bool[2, 4] = gt c n; m: f32[2, 4] = mul c r; s: f32[2, 4] = add m w; "
                  "y: f32[2, 4] = where g c s; return y") ==
        two_parts +
            "c: f32[] = input; d: f32[2, 1] = input; e: f32[4] = input; "
            "f: bool[2, 3] = gt a c; g: bool[2, 1] = gt b c; "
            "h: f32[2, 3] = mul a d; i: f32[2, 1] = mul b d; "
            "j: f32[3] = slice e starts=[0] sizes=[3] steps=[1]; k: f32[2, 3] = add h j; "
            "l: f32[1] = slice e starts=[3] sizes=[1] steps=[1]; m: f32[2, 1] = add i l; "
            "n: f32[2, 3] = where f a k; o: f32[2, 1] = where g b m; "
            "p: f32[2, 4] = concat n o axis=1; return p");
  // What broadcasts the pieces.
  CHECK(in_pieces("a: f32[3] = input; b: f32[1] = input; x: f32[4, 4] = input; "
                  "c: f32[4] = concat a b axis=0; y: f32[4, 4] = add c x; return y") ==
        "a: f32[3] = input; b: f32[1] = input; c: f32[4, 4] = input; "
        "d: f32[4, 3] = slice c starts=[0, 0] sizes=[4, 3] steps=[1, 1]; e: f32[4, 3] = add a d; "
        "f: f32[4, 1] = slice c starts=[0, 3] sizes=[4, 1] steps=[1, 1]; g: f32[4, 1] = add b f; "
        "h: f32[4, 4] = concat e g axis=1; return h");
  // Views that leave the axis alone; the reshape behind it is of the result.
  CHECK(in_pieces(
            two_parts + side_by_side +
            "r: f32[2, 1, 4] = reshape c shape=[2, 1, 4]; e: f32[2, 5, 4] = expand r shape=[2, 5, "
            "4]; p: f32[4, 2, 5] = permute e axes=[2, 0, 1]; k: f32[4, 2, 5] = copy p; "
            "y: f32[40] = reshape k shape=[40]; return y") ==
        two_parts +
            "c: f32[2, 1, 3] = reshape a shape=[2, 1, 3]; d: f32[2, 1, 1] = reshape b shape=[2, 1, "
            "1]; e: f32[2, 5, 3] = expand c shape=[2, 5, 3]; f: f32[2, 5, 1] = expand d shape=[2, "
            "5, 1]; g: f32[3, 2, 5] = permute e axes=[2, 0, 1]; h: f32[1, 2, 5] = permute f "
            "axes=[2, 0, 1]; i: f32[3, 2, 5] = copy g; j: f32[1, 2, 5] = copy h; "
            "k: f32[4, 2, 5] = concat i j axis=0; l: f32[40] = reshape k shape=[40]; return l");
}

TEST_CASE("sink_concats leaves what would be written more often", "[jit][pass]") {
  const std::string same = two_parts + side_by_side;
  stays_whole(same + "return c");
  // The concat is read by others; two values are; a sum reads it from registers; another concat.
  stays_whole(same + "d: f32[2, 4] = tanh c; return c d");
  stays_whole(same + "d: f32[2, 4] = tanh c; e: f32[2, 4] = exp c; return d e");
  stays_whole(same + "d: f32[2, 4] = tanh c; e: f32[2] = sum d axes=[1] keepdims=false; return e");
  stays_whole(same + "d: f32[2, 4] = tanh c; e: f32[2, 8] = concat d d axis=1; return e");
  // Views that take the axis apart; operands that a kernel makes for others, or of another
  // kernel's.
  stays_whole(same +
              "d: f32[2, 2, 2] = reshape c shape=[2, 2, 2]; e: f32[2, 2, 2] = tanh d; return e");
  stays_whole(two_parts +
              "c: f32[2, 4] = input; d: f32[2, 4] = tanh c; e: f32[2, 4] = concat a b axis=1; "
              "f: f32[2, 4] = add d e; return f d");
  stays_whole(same + "d: f32[4, 2] = reshape c shape=[4, 2]; e: f32[4, 2] = tanh d; return e");
  stays_whole(two_parts +
              "c: f32[2, 4] = input; d: f32[2, 4] = tanh c; e: f32[2, 4] = exp d; "
              "f: f32[2, 4] = concat a b axis=1; g: f32[2, 4] = add e f; return g");
  // Nothing along the axis, and one piece.
  stays_whole(
      "a: f32[2, 3] = input; b: f32[2, 0] = input; c: f32[2, 3] = concat a b axis=1; "
      "d: f32[2, 3] = tanh c; return d");
  stays_whole(
      "a: f32[2, 3] = input; b: f32[2, 3] = concat a axis=1; c: f32[2, 3] = tanh b; return c");
}

TEST_CASE("what is made of joined tensors is one write", "[jit][pass]") {
  const auto rolled = [](const Tensor& x) -> Tensor {
    const Tensor y = tile(roll(x, {3}, {1}), {2, 3});
    return cumsum(where(y > 0, y, y * 0.1F), 1);
  };
  check_end_to_end("sink_concats", rolled, randn({5, 8}));
  // Rotary positions: halves change places, and one is turned round.
  const Tensor angles = randn({6, 8}), weight = randn({8, 4});
  const auto turned = [&](const Tensor& x) -> Tensor {
    const Tensor first = slice(x, 1, {0, 4}), second = slice(x, 1, {4, 8});
    return matmul(x * cos(angles) + concat({-second, first}, 1) * sin(angles), weight);
  };
  check_end_to_end("sink_concats", turned, randn({6, 8}));
  const auto written = [](const auto& f, const Tensor& x) {
    const auto g = compile(f, {.check = Check::never});
    for (int call = 0; call < 3; ++call) CHECK(same_bits(g(x), f(x)));
    std::size_t bytes = 0;
    for (const StepReport& step : g.explain().signatures.at(0).plan.steps)
      bytes += step.bytes_written;
    return bytes;
  };
  const Tensor x = randn({100, 200});
  const std::size_t with = written(rolled, x);
  const WithoutPasses off({"sink_concats"});
  CHECK(written(rolled, x) - with == sizeof(float) * 100 * 200);
}
