#include "jit/passes/pipeline.h"

#include "core/log.h"
#include "nitinol.h"
#include "tests/jit/passes/pass_text.h"

#include <cstdio>
#include <unistd.h>

using namespace nitinol;
using namespace nitinol::test;

namespace {

const std::string recorded =
    "a: f32[4] = input; b = copy a; c = exp b; d = exp a; e = add c d; f = neg a; return e";

Graph recorded_graph() {
  return parse(recorded, all_ops());
}

/// What `body` writes to stderr.
template <class Body>
std::string stderr_of(const Body& body) {
  std::FILE* file = std::tmpfile();
  REQUIRE(file != nullptr);
  std::fflush(stderr);
  const int saved = dup(STDERR_FILENO);
  REQUIRE(saved >= 0);
  dup2(fileno(file), STDERR_FILENO);
  body();
  std::fflush(stderr);
  dup2(saved, STDERR_FILENO);
  close(saved);
  std::string text(static_cast<std::size_t>(std::ftell(file)), '\0');
  REQUIRE(std::fseek(file, 0, SEEK_SET) == 0);
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}

void dump_while_running(std::vector<std::string> names) {
  const jit::PassOptions before = jit::pass_options();
  jit::PassOptions options = before;
  options.dumped = std::move(names);
  jit::set_pass_options(options);
  static_cast<void>(jit::run_passes(recorded_graph(), jit::pass_options()));
  jit::set_pass_options(before);
}

}  // namespace

TEST_CASE("the passes work together", "[jit][pass]") {
  CHECK(to_string(jit::run_passes(recorded_graph(), jit::pass_options())) ==
        "a: f32[4] = input; b: f32[4] = exp a; c: f32[4] = add b b; return c");
}

TEST_CASE("passes are switched off by name", "[jit][pass]") {
  const WithoutPasses off({"merge_duplicates", "fuse"});
  CHECK_FALSE(jit::pass_options().has("fuse"));
  CHECK(jit::pass_options().has("simplify"));
  CHECK(to_string(jit::run_passes(recorded_graph(), jit::pass_options())) ==
        "a: f32[4] = input; b: f32[4] = exp a; c: f32[4] = exp a; d: f32[4] = add b c; return d");
}

TEST_CASE("a name that no pass has is noted, and so is one that cannot be switched off",
          "[jit][pass]") {
  std::vector<std::string> messages;
  set_log_sink([&messages](LogLevel, std::string_view message) { messages.emplace_back(message); });
  {
    const WithoutPasses off({"simplfy", "materialise_views", "simplify"});
    CHECK(to_string(
              jit::run_passes(
                  parse("a: f32[2, 3] strides=[1, 2] = input; b = reshape a shape=[6]; return b",
                        all_ops()),
                  jit::pass_options()))
              .find("copy") != std::string::npos);
  }
  set_log_sink({});
  REQUIRE(messages.size() == 2);
  CHECK(messages[0] ==
        "there is no pass 'simplfy' to switch off; there are trim_images, fuse, "
        "pack_operands, horizontal_fusion, overlap, cuda_graph, fold_constants, simplify, "
        "sink_reshapes, sink_concats, hoist_views, merge_duplicates, remove_dead");
}

TEST_CASE("graphs are dumped as text that parses", "[jit][pass]") {
  const std::string text = stderr_of([] { dump_while_running({"graph"}); });
  CHECK_THAT(text, Catch::StartsWith("-- recorded\na: f32[4] = input\nb: f32[4] = copy a\n") &&
                       Catch::EndsWith("-- after the passes\na: f32[4] = input\n"
                                       "b: f32[4] = exp a\nc: f32[4] = add b b\nreturn c\n"));
  const std::size_t last = text.rfind("-- after the passes\n");
  CHECK(to_string(parse(text.substr(last + 20), all_ops())) ==
        to_string(jit::run_passes(recorded_graph(), jit::pass_options())));
}

TEST_CASE("a pass that changed nothing is not dumped", "[jit][pass]") {
  CHECK(stderr_of([] { dump_while_running({"fold_constants"}); }).empty());
  CHECK_THAT(stderr_of([] { dump_while_running({"remove_dead"}); }),
             Catch::StartsWith("-- remove_dead\n"));
  CHECK_THAT(stderr_of([] { dump_while_running({"all"}); }),
             Catch::Contains("-- simplify\n") && !Catch::Contains("-- fold_constants\n"));
}
