#include "dist/engine_loader.h"

#include "core/environment.h"
#include "core/error.h"
#include "core/fork.h"
#include "core/own_file.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <dlfcn.h>
#include <string_view>
#include <unistd.h>

namespace nitinol::dist {
namespace {

/// What a launcher sets in the environment of what it starts.
struct Sign {
  const char* variable;
  std::string_view library;
  const char* count;  ///< the variable that says how many there are
};
constexpr std::array<Sign, 4> signs = {{
    {"OMPI_COMM_WORLD_RANK", "openmpi", "OMPI_COMM_WORLD_SIZE"},  // mpirun of Open MPI
    {"PMI_RANK", "mpich", "PMI_SIZE"},                 // mpirun of MPICH; srun, PMI-1, -2
    {"PMIX_RANK", "openmpi", "SLURM_STEP_NUM_TASKS"},  // srun --mpi=pmix
    {"MV2_COMM_WORLD_RANK", "mpich", "MV2_COMM_WORLD_SIZE"},
}};

struct Library {
  std::string_view name;
  const char* file;
};
constexpr std::array<Library, 2> libraries = {
    {{"openmpi", "libmpi.so.40"}, {"mpich", "libmpich.so.12"}}};

int number(const char* variable) {
  const std::string text = environment_text(variable);
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// The library that somebody else, such as mpi4py, has brought into the process.
std::string loaded_library() {
  for (const Library& library : libraries) {
    if (void* const module = dlopen(library.file, RTLD_LAZY | RTLD_NOLOAD)) {
      dlclose(module);
      return std::string(library.name);
    }
  }
  return {};
}

[[noreturn]] void throw_missing(const Start& start, const std::string& reason) {
  throw Error(
      ErrorKind::io,
      {.where = "dist::init",
       .what = fmt::format("this process was started together with others ({}), by {}, but {}",
                           start.sign, start.library, reason),
       .expected = {},
       .got = {},
       .fix = "Build the library where that MPI is installed (NITINOL_MPI=ON; on Debian "
              "libopenmpi-dev or libmpich-dev), or start the processes by the mpirun of one "
              "that it has a module for."});
}

}  // namespace

Start found_start() {
  Start start;
  for (const Sign& sign : signs) {
    const std::string rank = environment_text(sign.variable);
    if (rank.empty()) continue;
    start = {.library = std::string(sign.library),
             .sign = fmt::format("{}={}", sign.variable, rank),
             .processes = number(sign.count)};
    break;
  }
  constexpr std::array<std::string_view, libraries.size()> names = {libraries[0].name,
                                                                    libraries[1].name};
  if (const auto chosen = environment_choice("NITINOL_MPI", names)) {
    start.library = names[*chosen];
    if (start.sign.empty()) start.sign = fmt::format("NITINOL_MPI={}", start.library);
  } else if (const std::string loaded = loaded_library(); !loaded.empty()) {
    start.library = loaded;  // two in one process would disturb each other
    if (start.sign.empty()) start.sign = fmt::format("{} is in the process", loaded);
  }
  return start;
}

Engine& open_engine(const Start& start) {
  const NoFork no_fork;
  const std::string file = beside_own_file(fmt::format("libnitinol_{}.so", start.library));
  if (access(file.c_str(), R_OK) != 0)
    throw_missing(start, fmt::format("the library has no module for it: there is no {}", file));
  // What an MPI opens itself looks for its functions among all that the process has.
  void* const module = dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (module == nullptr) throw_missing(start, dlerror());
  const auto entry = reinterpret_cast<EngineEntry>(dlsym(module, engine_symbol));
  Engine* const engine = entry != nullptr ? entry(engine_version) : nullptr;
  if (engine == nullptr) throw_missing(start, file + " is of another version");
  return *engine;
}

}  // namespace nitinol::dist
