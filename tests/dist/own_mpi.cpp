// tests/dist/own_mpi.cpp -- A program that opens MPI itself, and asks it for less than several
// threads: the library uses what there is, says what it may not do, and leaves closing to the
// program.
#include "nitinol.h"

#include <fmt/format.h>

#include <mpi.h>
#include <string>
#include <thread>

using namespace nitinol;

namespace {

int failures = 0;

void expect(bool holds, const std::string& what) {
  if (holds) return;
  ++failures;
  fmt::print(stderr, "rank {}: not so: {}\n", dist::world().rank(), what);
}

}  // namespace

int main(int argc, char** argv) {
  const bool serialized = argc > 1 && std::string(argv[1]) == "serialized";
  int given = 0;
  MPI_Init_thread(&argc, &argv, serialized ? MPI_THREAD_SERIALIZED : MPI_THREAD_FUNNELED, &given);
  dist::init();
  const int ranks = dist::world().size();
  const Tensor x = ones({100'000});
  const auto is_right = [&](const Tensor& y) {
    return all(y == static_cast<float>(ranks)).item<bool>();
  };
  expect(is_right(dist::all_reduce(x)), "a sum");
  // Compiled: what would go on beside others is done where it is begun, if it has to be.
  const auto f =
      compile([](const Tensor& a) { return dist::all_reduce(a * 2) * 0.5 + sum(exp(a)) * 0; },
              {.check = Check::never});
  for (int call = 0; call < 5; ++call) expect(is_right(f(x)), "a compiled sum");
  const bool is_limited = given < MPI_THREAD_SERIALIZED;
  const std::string text = dist::description();
  expect(text.find(given == MPI_THREAD_MULTIPLE ? "any thread"
                   : is_limited                 ? "main thread only"
                                                : "one thread at a time") != std::string::npos,
         "what may call it is said: " + text);
  std::string message;
  std::thread([&] {
    try {
      static_cast<void>(dist::all_reduce(x));
    } catch (const Error& error) {
      message = error.message();
    }
  }).join();
  expect(
      is_limited == (message.find("only the thread that called dist::init()") != std::string::npos),
      "other threads may not: " + message);
  // Ranks that do not do the same are told so where calls of MPI must not overlap, too.
  if (ranks > 1) {
    const dist::Group other = dist::world().split(0);
    message.clear();
    try {
      static_cast<void>(
          dist::all_reduce(ones({dist::world().rank() + 1}), dist::Reduce::sum, other));
    } catch (const Error& error) {
      message = error.message();
    }
    expect(message.find("have to do the same") != std::string::npos, "a mismatch: " + message);
  }
  dist::barrier();
  MPI_Finalize();
  try {
    static_cast<void>(dist::all_reduce(x));
    expect(ranks == 1, "nothing can be sent any more");
  } catch (const Error& error) {
    expect(std::string(error.message()).find("MPI has been closed") != std::string::npos,
           error.message());
  }
  return failures == 0 ? 0 : 1;
}
