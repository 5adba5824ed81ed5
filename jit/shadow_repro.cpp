// A finding as a folder that somebody else can run.
#include "core/error.h"
#include "eager/ops/cast.h"
#include "io/file.h"
#include "io/npy.h"
#include "jit/build_info.h"
#include "jit/shadow_search.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): mkdtemp

namespace nitinol::jit {
namespace {

std::filesystem::path new_folder() {
  std::error_code none;
  std::string name =
      (std::filesystem::temp_directory_path(none) / "nitinol-shadow-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) {
    throw Error(ErrorKind::io, {.where = "shadow",
                                .what = fmt::format("a folder {}", name),
                                .expected = "one that can be made (TMPDIR says where)",
                                .got = std::strerror(errno)});
  }
  return name;
}

/// As a comment.
std::string commented(const std::string& text) {
  std::string out = "// ";
  for (const char c : text) out += c == '\n' ? std::string("\n// ") : std::string(1, c);
  return out;
}

std::string program(const Finding& finding, const std::string& function, const std::string& graph) {
  std::string inputs;
  for (std::size_t i = 0; i < finding.smallest.inputs.size(); ++i)
    inputs += fmt::format("      nitinol::load_npy(folder / \"input_{}.npy\"),\n", i);
  const Variation& variation = finding.variation;
  std::string remarks = fmt::format(
      "A difference between compiled code and its ops one by one, found in `{}`.\n{}\nThe cause: "
      "{}.\n\n{}",
      function, finding.difference, finding.cause, build_info());
  if (variation.updates_in_place) {
    remarks +=
        "\n\nIt was seen where results are stored over inputs, which this program does not do.";
  }
  return fmt::format(
      "{}\n//\n"
      "// c++ -std=c++20 repro.cpp $(pkg-config --cflags --libs nitinol) -o repro && ./repro\n"
      "#include <nitinol/nitinol.h>\n\n"
      "#include <cstdio>\n"
      "#include <filesystem>\n"
      "#include <string>\n"
      "#include <vector>\n"
      R"text(
const char* const graph = R"graph(
{}
)graph";

int main(int count, char** arguments) {{
  const std::filesystem::path folder = count > 1 ? arguments[1] : ".";
  nitinol::set_num_threads({});
  const std::vector<nitinol::Tensor> inputs = {{
{}  }};
  const std::string difference = nitinol::shadow_difference(graph, inputs);
  std::puts(difference.empty() ? "the same bits" : difference.c_str());
  return difference.empty() ? 0 : 1;
}}
)text",
      commented(remarks), graph, variation.threads, inputs);
}

}  // namespace

std::string write_repro(const Finding& finding, const std::string& function) {
  const std::filesystem::path folder = new_folder();
  const Experiment& experiment = finding.smallest;
  const std::string graph = by_lines(to_string(experiment.graph));
  io::write_text("shadow", folder / "graph.txt", graph + "\n");
  io::write_text("shadow", folder / "repro.cpp", program(finding, function, graph));
  for (std::size_t i = 0; i < experiment.inputs.size(); ++i) {
    const Tensor& input = experiment.inputs[i];
    save_npy(folder / fmt::format("input_{}.npy", i),
             input.dtype() == bf16 ? cast(input, f32) : input);
  }
  return folder.string();
}

}  // namespace nitinol::jit
