// tests/dist/failures.cpp -- What goes wrong when processes compute together, one case a run; what
// has to be seen then is in failures.py.
#include "nitinol.h"

#include <fmt/format.h>

#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/wait.h>
#include <unistd.h>

using namespace nitinol;

namespace {

Tensor some(int64_t count = 1000) {
  return full({count}, static_cast<float>(dist::world().rank()));
}

/// Collectives that all ranks join.
void begin() {
  for (int i = 0; i < 3; ++i) static_cast<void>(dist::all_reduce(some()));
  synchronize();
}

/// Each rank gets a GPU; on one of them something goes wrong (tests/cuda/fake/README.md).
void take_gpu(const std::string& name) {
  const int rank = dist::world().rank();
  const auto fails = [&](const char* what) {
    if (rank == 1) setenv("NITINOL_FAKE_FAIL", what, 1);
  };
  if (name == "none") fails("ncclGetVersion:1:3");
  if (name == "meeting") fails("ncclCommInitRankConfig:1:2");
  if (name == "refused") fails("ncclGroupEnd:4:3");
  if (name == "broken") fails("ncclCommGetAsyncError:9:1");
  const bool is_stalled = name == "stalled" || name == "broken" || name.starts_with("interrupted");
  if (is_stalled && rank == 1) setenv("NITINOL_FAKE_STALL", "4", 1);
  set_default_device({Device::Kind::cuda, static_cast<int8_t>(rank)});
}

int run(const std::string& name) {
  const int rank = dist::world().rank();
  const bool is_other = rank == 1;
  if (std::getenv("NITINOL_FAKE_DEVICES") != nullptr) take_gpu(name);
  begin();
  if (name == "kill" && is_other) raise(SIGKILL);
  if (name == "stop" && is_other) raise(SIGSTOP);
  if (name == "exit0" && is_other) return 0;
  if (name == "exit3" && is_other) std::exit(3);
  if (name == "_exit" && is_other) _exit(0);
  if (name == "exception" && is_other) throw std::runtime_error("of its own");
  if (name == "late" && is_other) sleep(1);
  if (name == "shape") {
    static_cast<void>(dist::all_reduce(some(is_other ? 1001 : 1000)));
  } else if (name == "dtype") {
    static_cast<void>(dist::all_reduce(is_other ? cast(some(), i32) : some()));
  } else if (name == "device") {
    static_cast<void>(dist::all_reduce(is_other ? some().to(Device{}) : some()));
  } else if (name == "large") {  // too much for a first message
    static_cast<void>(dist::all_reduce(some(is_other ? 200'001 : 200'000)));
  } else if (name == "small") {  // little from one, much from the others
    static_cast<void>(dist::all_reduce(some(is_other ? 10 : 200'000)));
  } else if (name == "mean") {  // by memory that is shared
    static_cast<void>(
        dist::all_reduce(some(200'000), is_other ? dist::Reduce::mean : dist::Reduce::sum));
  } else if (name == "killed in rounds") {
    for (int round = 0; round < 1'000'000; ++round) {
      if (round == 200 && is_other) raise(SIGKILL);
      static_cast<void>(dist::all_reduce(some(900'000)));
    }
  } else if (name == "order") {
    if (is_other) {
      static_cast<void>(dist::all_gather(some()));
      static_cast<void>(dist::all_reduce(some(10)));
    } else {
      static_cast<void>(dist::all_reduce(some(10)));
      static_cast<void>(dist::all_gather(some()));
    }
  } else if (name == "extra") {
    if (is_other) static_cast<void>(dist::all_reduce(some()));
    static_cast<void>(dist::all_gather(some()));
  } else if (name == "line") {  // seen by NITINOL_CHECK=ranks alone
    if (is_other)
      static_cast<void>(dist::all_reduce(some()));
    else
      static_cast<void>(dist::all_reduce(some()));
  } else if (name == "compiled") {
    const auto f =
        compile([&](const Tensor& x) { return dist::all_reduce(x * 2); }, {.check = Check::never});
    for (int call = 0; call < 5; ++call)
      static_cast<void>(f(some(call == 4 && is_other ? 999 : 1000)));
  } else if (name == "caught") {
    try {
      static_cast<void>(dist::all_reduce(some(is_other ? 1001 : 1000)));
    } catch (const Error& error) {
      fmt::print(stderr, "caught: {}\n", error.message());
    }
    return 0;                   // but not all is well
  } else if (name == "root") {  // of which one rank alone sees the others
    static_cast<void>(dist::broadcast(is_other ? some(5) : some(), 0));
    begin();
  } else if (name == "roots") {  // nobody goes on: it is found in the broadcast itself
    static_cast<void>(is_other ? dist::broadcast(some(), 1) : dist::broadcast(some(), 0));
    return 0;
  } else if (name == "roots around") {  // each waits for one that waits for another
    static_cast<void>(dist::broadcast(some(), (rank + 1) % dist::world().size()));
    return 0;
  } else if (name == "shifts") {  // nobody goes on, and no two send to each other what they await
    static_cast<void>(dist::permute(some(), is_other ? 2 : 1));
    return 0;
  } else if (name == "no shift") {  // one deals with nobody, and goes on
    static_cast<void>(dist::permute(some(), is_other ? 0 : 1));
    begin();
  } else if (name == "fork") {
    const pid_t child = fork();
    if (child == 0) {
      try {
        static_cast<void>(dist::all_reduce(some()));
      } catch (const Error& error) {
        fmt::print(stderr, "in the child: {}\n", error.message());
        std::exit(0);
      }
      std::exit(1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    if (status != 0) return 1;
  } else if (name == "long") {  // for a minute, if nothing happens
    for (int i = 0; i < 6000; ++i) {
      begin();
      usleep(10'000);
    }
  } else if (name.starts_with(
                 "interrupted")) {  // as by Ctrl-C in Python, while it waits for its GPU
    if (rank == 0) {
      set_interrupt_check([] {
        static int asked = 0;
        if (++asked == 6) throw std::runtime_error("Ctrl-C");
      });
    }
    try {
      if (name == "interrupted") {
        begin();
      } else {  // for pinned memory, whose copies come behind the sum
        const Tensor sum = dist::all_reduce(some());
        for (int i = 0; i < 20; ++i) static_cast<void>(sum + tensor(std::vector<float>(1000)));
      }
    } catch (const std::runtime_error& error) {
      if (std::string_view(error.what()) != "Ctrl-C") throw;
      fmt::print(stderr, "seen: {}\n", error.what());
      sleep(1);                                      // the others are told, too
      static_cast<void>(some().to_vector<float>());  // which says why there are no values any more
    }
  } else if (name == "left") {  // goes on alone where that is possible
    if (rank != 0) return 0;
    usleep(200'000);
    static_cast<void>(some() + 1);
    return 0;
  }
  begin();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  try {
    if (name == "bare") {
      begin();
      return 0;
    }
    const int status = run(name);
    if (status == 0) fmt::print("rank {} is done\n", dist::world().rank());
    return status;
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    if (name == "exception") throw;
    return 2;
  }
}
