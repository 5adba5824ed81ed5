// nitinol_matmul: how fast is each way of multiplying matrices on this machine, by shape?
//
// Prints a table that docs/decisions/0015-matrix-products.md and the rule in
// backends/cpu/onednn/matmul_rule.cpp are made from: run it on a machine to see whether the rule
// holds there. Ways take turns, so that a change of the machine's speed falls on all; a figure is
// the fastest of several samples. Calls are the library's own.

#include "backends/cpu/onednn/matmul_rule.h"
#include "backends/cpu/onednn/onednn.h"
#include "core/isa.h"
#include "core/parallel.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace nitinol::cpu {
namespace {

/// a[m, k] b[k, n], or a batch of them. 'N': the rows of an operand are contiguous, 'T': its
/// columns.
struct Shape {
  int64_t m, k, n;
  std::string layouts = "NN";
  int64_t batch = 1;
  std::string use = {};
};

/// What the models of the benchmark multiply, and what lies around it.
std::vector<Shape> known_shapes() {
  return {
      {128, 768, 3072, "NN", 1, "gelu row"},
      {512, 768, 3072, "NN", 1, "block: up"},
      {768, 512, 3072, "TN", 1, "its dW"},
      {512, 3072, 768, "NT", 1, "its dx"},
      {512, 3072, 768, "NN", 1, "block: down"},
      {3072, 512, 768, "TN", 1, "its dW"},
      {512, 768, 3072, "NT", 1, "its dx"},
      {512, 768, 2304, "NN", 1, "block: q, k, v"},
      {768, 512, 2304, "TN", 1, "its dW"},
      {512, 2304, 768, "NT", 1, "its dx"},
      {512, 768, 768, "NN", 1, "block: projection"},
      {768, 512, 768, "TN", 1, "its dW"},
      {512, 768, 768, "NT", 1, "its dx"},
      {128, 64, 128, "NT", 48, "attention: scores"},
      {128, 128, 64, "NN", 48, "attention: values"},
      {128, 128, 64, "TN", 48, "its dv"},
      {1600, 128, 1024, "NN", 1, "LSTM: all inputs"},
      {32, 128, 1024, "NN", 1, "LSTM: input"},
      {32, 256, 1024, "NN", 1, "LSTM: hidden"},
      {32, 1024, 256, "NT", 1, "its dh"},
      {256, 32, 1024, "TN", 1, "its dW, a step"},
      {256, 1600, 1024, "TN", 1, "its dW, all steps"},
      {128, 1600, 1024, "TN", 1, "dW of the inputs"},
      {128, 784, 256, "NN", 1, "MLP ii"},
      {784, 128, 256, "TN", 1, "its dW"},
      {128, 256, 128, "NN", 1, "MLP ii"},
      {256, 128, 128, "TN", 1, "its dW"},
      {128, 128, 256, "NT", 1, "its dx"},
      {128, 128, 10, "NN", 1, "MLP ii"},
      {128, 128, 10, "TN", 1, "its dW"},
      {128, 10, 128, "NT", 1, "its dx"},
      {32, 100, 128, "NN", 1, "MLP i"},
      {100, 32, 128, "TN", 1, "its dW"},
      {1000, 100, 128, "NN", 1, "MLP i"},
      {100, 1000, 128, "TN", 1, "its dW"},
      {1000, 128, 10, "NN", 1, "MLP i"},
      {128, 1000, 10, "TN", 1, "its dW"},
      {1000, 10, 128, "NT", 1, "its dx"},
      {64, 1600, 128, "NN", 1, "CNN"},
      {1600, 64, 128, "TN", 1, "its dW"},
      {64, 128, 1600, "NT", 1, "its dx"},
      {8, 8, 8},
      {16, 16, 16},
      {32, 32, 32},
      {64, 64, 64},
      {256, 256, 256},
      {1024, 1024, 1024},
      {2048, 2048, 2048},
      {1024, 1024, 1024, "TN"},
      {1024, 1024, 1024, "NT"},
      {1, 1024, 1024},
      {1, 1024, 1024, "NT"},
      {1, 64, 64},
      {1, 4096, 1},
      {1024, 1024, 1},
      {1024, 1024, 1, "TN"},
      {64, 64, 1},
      {4, 1024, 1024},
      {4, 1024, 1024, "NT"},
      {8, 768, 3072},
      {8, 256, 768, "NT"},
      {32, 1024, 2048},
      {64, 128, 1024},
      {64, 256, 512},
      {16, 4096, 4096},
      {128, 1024, 1280},
      {128, 2048, 1536},
      {64, 256, 1024, "TN"},
      {4096, 64, 64},
      {64, 4096, 64},
      {64, 64, 4096},
      {8, 100000, 32, "TN"},
  };
}

/// MxKxN, perhaps with a colon and the layouts.
Shape parse(const std::string& text) {
  Shape shape = {};
  std::array<char, 3> layouts = {'N', 'N', '\0'};
  long long m = 0, k = 0, n = 0;
  const int read = std::sscanf(text.c_str(), "%lldx%lldx%lld:%2[NT]", &m, &k, &n, layouts.data());
  if (read < 3 || m < 1 || k < 1 || n < 1 || std::strlen(layouts.data()) != 2)
    throw std::runtime_error("not a shape, such as 128x768x3072 or 32x1024x256:NT: " + text);
  return {.m = m, .k = k, .n = n, .layouts = layouts.data()};
}

MatmulDescription describe(const Shape& shape, int threads) {
  MatmulDescription description;
  description.threads = threads;
  const auto set = [&](std::size_t operand, int64_t rows, int64_t columns, char layout) {
    auto& sizes = description.sizes[operand];
    auto& strides = description.strides[operand];
    if (shape.batch > 1) {
      sizes.push_back(shape.batch);
      strides.push_back(rows * columns);
    }
    sizes.insert(sizes.end(), {rows, columns});
    if (layout == 'N')
      strides.insert(strides.end(), {columns, 1});
    else
      strides.insert(strides.end(), {1, rows});
  };
  set(0, shape.m, shape.k, shape.layouts[0]);
  set(1, shape.k, shape.n, shape.layouts[1]);
  set(2, shape.m, shape.n, 'N');
  return description;
}

struct alignas(64) Line {
  std::array<float, 16> values;
};

/// Numbers in memory that starts at a cache line.
class Numbers {
 public:
  explicit Numbers(int64_t count) : lines_(static_cast<std::size_t>(count) / 16 + 1) {
    std::minstd_rand generator(static_cast<unsigned>(count));
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (Line& line : lines_) {
      for (float& value : line.values) value = uniform(generator);
    }
  }
  [[nodiscard]] float* data() { return lines_[0].values.data(); }
  friend bool operator==(const Numbers& a, const Numbers& b) {
    return std::memcmp(a.lines_.data(), b.lines_.data(), a.lines_.size() * sizeof(Line)) == 0;
  }

 private:
  std::vector<Line> lines_;
};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double seconds_of(const std::function<void()>& call, int64_t count) {
  const double start = now();
  for (int64_t i = 0; i < count; ++i) call();
  return now() - start;
}

/// Seconds a call, the fastest of `samples` samples of about `sample_s`, in turns.
std::vector<double> fastest_of(const std::vector<std::function<void()>>& calls, int samples,
                               double sample_s) {
  std::vector<double> fastest(calls.size(), 1e9);
  std::vector<int64_t> counts;
  for (const auto& call : calls) {
    seconds_of(call, 2);
    const double once = std::max(seconds_of(call, 1), 1e-7);
    counts.push_back(std::max<int64_t>(static_cast<int64_t>(sample_s / once), 1));
  }
  for (int sample = 0; sample < samples; ++sample) {
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const double seconds = seconds_of(calls[i], counts[i]) / static_cast<double>(counts[i]);
      fastest[i] = std::min(fastest[i], seconds);
    }
  }
  return fastest;
}

struct Settings {
  int samples = 8;
  double sample_s = 0.005;
};

/// One row of the table.
void measure(const Shape& shape, int threads, const Settings& settings) {
  const MatmulDescription description = describe(shape, threads);
  const auto primitive = make_onednn_matmul(description, MatmulWay::primitive);
  const auto packed = make_onednn_packed_matmul(description);
  if (primitive == nullptr || !packed) {
    fmt::print("| {}x{}x{} {} | oneDNN has no primitive |\n", shape.m, shape.k, shape.n,
               shape.layouts);
    return;
  }
  const int64_t b_size = shape.k * shape.n, c_size = shape.m * shape.n;
  Numbers a(shape.batch * shape.m * shape.k), b(shape.batch * b_size);
  Numbers of_primitive(shape.batch * c_size), of_gemm(shape.batch * c_size),
      of_packed(shape.batch * c_size);
  Numbers packed_b(static_cast<int64_t>(packed->packed_bytes / sizeof(float)));

  Shape one = shape;
  one.batch = 1;
  const auto gemm = make_onednn_matmul(describe(one, threads), MatmulWay::gemm);
  const auto by_gemm = [&] {
    for (int64_t i = 0; i < shape.batch; ++i) {
      gemm->run({a.data() + i * shape.m * shape.k, b.data() + i * b_size},
                of_gemm.data() + i * c_size);
    }
  };
  const auto pack = [&] { packed->packing->run({b.data()}, packed_b.data()); };
  const auto by_packed = [&] {
    packed->product->run({a.data(), packed_b.data()}, of_packed.data());
  };
  pack();
  const std::vector<double> seconds =
      fastest_of({[&] {
                    primitive->run({a.data(), b.data()}, of_primitive.data());
                  },
                  by_gemm, by_packed,
                  [&] {
                    pack();
                    by_packed();
                  }},
                 settings.samples, settings.sample_s);

  const double operations = 2.0 * static_cast<double>(shape.batch * shape.m * b_size);
  const auto rate = [&](std::size_t way) { return operations / seconds[way] * 1e-9; };
  const bool is_gemm = fastest_way(description) == MatmulWay::gemm;
  fmt::print("| {}{}x{}x{} {} | {} | {} | {:.0f} | {:.0f} | {:.0f} | {:.0f} | {} | {:.2f} | {} |\n",
             shape.batch > 1 ? fmt::format("{} * ", shape.batch) : "", shape.m, shape.k, shape.n,
             shape.layouts, shape.use, threads, rate(0), rate(1), rate(2), rate(3),
             is_gemm ? "gemm" : "primitive", rate(is_gemm ? 1 : 0) / std::max(rate(0), rate(1)),
             of_primitive == of_packed ? "same" : "DIFFER");
  std::fflush(stdout);
}

void measure_all(const std::vector<Shape>& shapes, const std::vector<int>& threads,
                 const Settings& settings) {
  fmt::print("GFLOP/s, f32, {}. N: rows contiguous, T: columns.\n\n", name_of(current_isa()));
  fmt::print(
      "| product | use | threads | primitive | gemm | packed b | packing too | rule | of "
      "best | bits of packed |\n|---|---|---|---|---|---|---|---|---|---|\n");
  for (const int count : threads) {
    set_num_threads(count);
    for (const Shape& shape : shapes) measure(shape, count, settings);
  }
}

}  // namespace
}  // namespace nitinol::cpu

int main(int argc, char** argv) {
  try {
    std::vector<int> threads = {1, 2};
    std::vector<std::string> given;
    bool is_quick = false;
    CLI::App app("Times the ways of multiplying matrices on this machine.");
    app.add_option("shapes", given, "MxKxN or MxKxN:NT; without, those of the benchmark's models");
    app.add_option("--threads", threads, "thread counts")
        ->delimiter(',')
        ->check(CLI::Range(1, 1024));
    app.add_flag("--quick", is_quick, "few and short samples: a check that everything runs");
    CLI11_PARSE(app, argc, argv);
    std::vector<nitinol::cpu::Shape> shapes;
    for (const std::string& text : given) shapes.push_back(nitinol::cpu::parse(text));
    if (shapes.empty()) shapes = nitinol::cpu::known_shapes();
    nitinol::cpu::Settings settings;
    if (is_quick) settings = {.samples = 1, .sample_s = 0.0001};
    nitinol::cpu::measure_all(shapes, threads, settings);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "nitinol_matmul: %s\n", error.what());
    return 1;
  }
}
