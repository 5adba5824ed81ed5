// bench/dist.cpp -- What computing by several processes costs, beside MPI's own sum in the same
// run.
//
//     mpirun -n 2 nitinol_dist_bench_openmpi [--rows all_reduce,mlp,overlap] [--batch 512]
//
// Rank 0 prints; a row is a median of 7 samples, of which ways take turns.
#include "nitinol.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <mpi.h>
#include <string>
#include <vector>

using namespace nitinol;

namespace {

/// Something that all ranks do, or rank 0 alone.
struct Way {
  std::string name;
  std::function<void()> run;
  bool is_alone = false;
};

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Median seconds of each way, which all ranks begin together.
std::vector<double> times_of(const std::vector<Way>& ways) {
  constexpr int samples = 7;
  const int rank = dist::world().rank();
  std::vector<std::vector<double>> times(ways.size());
  std::vector<int64_t> repeats(ways.size(), 0);
  for (int sample = -1; sample < samples; ++sample) {
    for (std::size_t w = 0; w < ways.size(); ++w) {
      const bool takes_part = rank == 0 || !ways[w].is_alone;
      if (sample < 0) {  // warm, and how often it has to be done for 20 ms
        for (int i = 0; takes_part && i < 5; ++i) ways[w].run();
        const double start = seconds();
        if (takes_part) ways[w].run();
        const auto needed = static_cast<int64_t>(0.02 / std::max(1e-7, seconds() - start)) + 1;
        repeats[w] = dist::broadcast(tensor(needed), 0).item<int64_t>();
        continue;
      }
      dist::barrier();
      const double start = seconds();
      for (int64_t i = 0; takes_part && i < repeats[w]; ++i) ways[w].run();
      times[w].push_back((seconds() - start) / static_cast<double>(repeats[w]));
    }
  }
  std::vector<double> medians;
  for (std::vector<double>& list : times) {
    std::ranges::sort(list);
    medians.push_back(list.empty() ? 0 : list[list.size() / 2]);
  }
  return medians;
}

std::string text_of(double time) {
  return time < 1e-3 ? fmt::format("{:.2f} us", time * 1e6) : fmt::format("{:.2f} ms", time * 1e3);
}

void print(const std::string& row, const std::vector<Way>& ways, const std::string& note) {
  const std::vector<double> times = times_of(ways);
  if (dist::world().rank() != 0) return;
  std::string line = fmt::format("{:<24}", row);
  for (std::size_t w = 0; w < ways.size(); ++w)
    line += fmt::format("  {} {}", ways[w].name, text_of(times[w]));
  line += fmt::format("  {:.2f} x {}", times[0] / times[1], ways[1].name);
  fmt::print("{}{}{}\n", line, note.empty() ? "" : "  ", note);
  std::fflush(stdout);
}

void all_reduces() {
  for (const int64_t count : {int64_t{1}, int64_t{250'000}, int64_t{8'000'000}}) {
    Tensor x = full({count}, 0.5F);
    const auto f =
        compile([](const Tensor& y) { return dist::all_reduce(y); }, {.check = Check::never});
    std::vector<float> from(static_cast<std::size_t>(count), 0.5F), to(from.size());
    const auto n = static_cast<std::size_t>(count);
    print(fmt::format("dist.all_reduce.{}B", count * 4),
          {{"eager", [&] { static_cast<void>(dist::all_reduce(x)); }},
           {"MPI_Allreduce",
            [&] {
              MPI_Allreduce(from.data(), to.data(), static_cast<int>(count), MPI_FLOAT, MPI_SUM,
                            MPI_COMM_WORLD);
            }},
           {"compiled", [&] { static_cast<void>(f(x)); }},
           {"three copies",
            [&] {
              for (int pass = 0; pass < 3; ++pass) {
                std::memcpy(to.data(), from.data(), n * sizeof(float));
                asm volatile("" ::: "memory");
              }
            }}},
          "");
  }
}

struct Mlp {
  nn::Linear hidden, out;
  Tensor operator()(const Tensor& x) const { return out(relu(hidden(x))); }
};

/// A step of Adam: on the whole batch by one rank, and on a part of it by each.
void mlp(int64_t batch) {
  const auto step_of = [](bool averages) {
    struct Training {
      Mlp model = {nn::linear(784, 256), nn::linear(256, 10)};
      nn::Adam optimizer{nn::parameters(model)};
    };
    const auto training = std::make_shared<Training>();
    return compile(
        [training, averages](const Tensor& x, const Tensor& labels) {
          training->optimizer.zero_grad();
          const Tensor loss = nn::cross_entropy(training->model(x), labels);
          loss.backward();
          if (averages) nn::average_gradients(nn::parameters(training->model));
          training->optimizer.step();
          return loss;
        },
        {.name = averages ? "parts" : "whole", .check = Check::never});
  };
  const int64_t part = batch / dist::world().size();
  const auto whole = step_of(false), parts = step_of(true);
  const Tensor x = rand({batch, 784}), labels = randint(0, 10, {batch});
  const Tensor x_part = rand({part, 784}), labels_part = randint(0, 10, {part});
  print(fmt::format("dist.mlp.step.b{}", batch),
        {{"parts", [&] { static_cast<void>(parts(x_part, labels_part)); }},
         {"one rank", [&] { static_cast<void>(whole(x, labels)); }, true}},
        "");
}

/// How much of the messages' time is hidden: a deep net, whose last gradients are sent while the
/// first are computed.
void overlap(int64_t batch) {
  constexpr int layers = 8, width = 512;
  struct Deep {
    std::vector<nn::Linear> layers;
    Tensor operator()(Tensor x) const {
      for (const nn::Linear& layer : layers) x = relu(layer(x));
      return x;
    }
  };
  Deep model;
  for (int i = 0; i < layers; ++i) model.layers.push_back(nn::linear(width, width));
  const std::vector<Variable> parameters = nn::parameters(model);
  const auto backward = [&](const Tensor& x) {
    for (const Variable& parameter : parameters) parameter.clear_grad();
    const Tensor loss = mean(square(model(x)));
    loss.backward();
    return loss;
  };
  const nn::AverageGradientsOptions options = {.bucket_bytes = width * width * 4};
  const auto computing = compile(backward, {.name = "computing", .check = Check::never});
  const auto sending = compile([&] { nn::average_gradients(parameters, options); },
                               {.name = "sending", .check = Check::never});
  const auto both = compile(
      [&](const Tensor& x) {
        const Tensor loss = backward(x);
        nn::average_gradients(parameters, options);
        return loss;
      },
      {.name = "both", .check = Check::never});
  const Tensor x = rand({batch, width});
  const std::vector<double> times =
      times_of({{"both", [&] { static_cast<void>(both(x)); }},
                {"computing", [&] { static_cast<void>(computing(x)); }},
                {"sending", [&] { sending(); }}});
  if (dist::world().rank() != 0) return;
  fmt::print("{:<24}  both {}  computing {}  sending {}  hidden {:.0f} %\n", "dist.overlap",
             text_of(times[0]), text_of(times[1]), text_of(times[2]),
             100 * (times[1] + times[2] - times[0]) / std::min(times[1], times[2]));
}

bool has(const std::string& rows, const std::string& name) {
  return rows.empty() || rows.find(name) != std::string::npos;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What computing by several processes costs");
  std::string rows;
  int64_t batch = 512;
  app.add_option("--rows", rows, "all_reduce, mlp, overlap; all of them if it is not given");
  app.add_option("--batch", batch, "samples of all ranks together");
  CLI11_PARSE(app, argc, argv);
  dist::init();
  set_num_threads(1);
  if (dist::world().rank() == 0) fmt::print("{}\n", dist::description());
  if (has(rows, "all_reduce")) all_reduces();
  if (has(rows, "mlp")) mlp(batch);
  if (has(rows, "overlap")) overlap(batch);
}
