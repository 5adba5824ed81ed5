// An MPI library as an Engine. Compiled once for each that is found when the library is built:
// their types differ, so that a module works with one.
#include "core/error.h"
#include "dist/engine.h"

#include <array>
#include <cstring>
#include <mpi.h>
#include <string>
#include <string_view>

namespace nitinol::dist {
namespace {

static_assert(sizeof(MPI_Request) <= sizeof(Request));

void check(const char* what, int code) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text = {};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw Error(ErrorKind::io, {.where = what,
                              .what = std::string("MPI says: ") + text.data(),
                              .expected = {},
                              .got = {},
                              .fix = {}});
}

Request number_of(MPI_Request request) {
  Request number = 0;
  std::memcpy(&number, &request, sizeof(request));
  return number;
}

MPI_Request request_of(Request number) {
  MPI_Request request;
  std::memcpy(&request, &number, sizeof(request));
  return request;
}

class MpiEngine final : public Engine {
 public:
  MpiEngine() {
    int is_there = 0;
    check("MPI_Initialized", MPI_Initialized(&is_there));
    if (is_there == 0) {
      check("MPI_Init_thread", MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &threads_));
      is_ours_ = true;
    } else {
      check("MPI_Query_thread", MPI_Query_thread(&threads_));
    }
    // Messages of its own, whatever else the program sends; and errors are returned.
    check("MPI_Comm_dup", MPI_Comm_dup(MPI_COMM_WORLD, &world_));
    check("MPI_Comm_set_errhandler", MPI_Comm_set_errhandler(world_, MPI_ERRORS_RETURN));
    check("MPI_Comm_rank", MPI_Comm_rank(world_, &rank_));
    check("MPI_Comm_size", MPI_Comm_size(world_, &size_));
    void* most = nullptr;
    int is_set = 0;
    check("MPI_Comm_get_attr", MPI_Comm_get_attr(world_, MPI_TAG_UB, &most, &is_set));
    if (is_set != 0) most_tag_ = *static_cast<int*>(most);
  }

  [[nodiscard]] std::string name() const override {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text = {};
    int length = 0;
    MPI_Get_library_version(text.data(), &length);
    // "Open MPI v4.1.4, package: ..."; "MPICH Version:      4.0.2\nMPICH Release date: ..."
    const std::string_view all = text.data();
    std::string name;
    for (const char letter : all.substr(0, all.find_first_of(",\n")))
      if (letter == '\t' || letter == ' ' ? !name.ends_with(' ') : letter != ':')
        name += letter == '\t' ? ' ' : letter;
    return name;
  }
  [[nodiscard]] bool takes_threads() const override { return threads_ == MPI_THREAD_MULTIPLE; }
  [[nodiscard]] bool is_of_one_thread() const override { return threads_ < MPI_THREAD_SERIALIZED; }
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  [[nodiscard]] int most_tag() const override { return most_tag_; }

  [[nodiscard]] Request send(int to, int tag, const void* data, std::size_t bytes) override {
    MPI_Request request = MPI_REQUEST_NULL;
    check("MPI_Isend",
          MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, to, tag, world_, &request));
    return number_of(request);
  }
  [[nodiscard]] Request receive(int from, int tag, void* data, std::size_t bytes) override {
    MPI_Request request = MPI_REQUEST_NULL;
    check("MPI_Irecv",
          MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, from, tag, world_, &request));
    return number_of(request);
  }
  [[nodiscard]] bool is_done(Request& number) override {
    MPI_Request request = request_of(number);
    int is_done = 0;
    check("MPI_Test", MPI_Test(&request, &is_done, MPI_STATUS_IGNORE));
    number = number_of(request);
    return is_done != 0;
  }
  void cancel(Request number) override {
    MPI_Request request = request_of(number);
    if (request == MPI_REQUEST_NULL) return;
    MPI_Cancel(&request);
    MPI_Request_free(&request);
  }
  [[nodiscard]] bool take(int tag, void* data, std::size_t bytes, int& from) override {
    int is_there = 0;
    MPI_Status status;
    check("MPI_Iprobe", MPI_Iprobe(MPI_ANY_SOURCE, tag, world_, &is_there, &status));
    if (is_there == 0) return false;
    from = status.MPI_SOURCE;
    check("MPI_Recv",
          MPI_Recv(data, static_cast<int>(bytes), MPI_BYTE, from, tag, world_, MPI_STATUS_IGNORE));
    return true;
  }

  [[nodiscard]] bool is_open() const override {
    int is_closed = 0;
    MPI_Finalized(&is_closed);
    return is_closed == 0;
  }
  void close() override {
    if (is_ours_) check("MPI_Finalize", MPI_Finalize());
  }
  [[noreturn]] void abort(int status) override {
    MPI_Abort(MPI_COMM_WORLD, status);
    _exit(status);
  }

 private:
  MPI_Comm world_ = MPI_COMM_NULL;
  int threads_ = MPI_THREAD_SINGLE;
  bool is_ours_ = false;
  int rank_ = 0, size_ = 1;
  int most_tag_ = 32767;  // what the standard promises
};

}  // namespace
}  // namespace nitinol::dist

extern "C" [[gnu::visibility("default")]] nitinol::dist::Engine* nitinol_mpi_plugin(int version);

nitinol::dist::Engine* nitinol_mpi_plugin(int version) {
  if (version != nitinol::dist::engine_version) return nullptr;
  return new nitinol::dist::MpiEngine;
}
