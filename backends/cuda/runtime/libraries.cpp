#include "backends/cuda/runtime/libraries.h"

#include "core/environment.h"
#include "core/error.h"
#include "core/log.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <pthread.h>
#include <string_view>
#include <utility>

namespace nitinol::cuda {
namespace {

namespace fs = std::filesystem;

constexpr int newest_major = 13, oldest_major = 12;

std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> parts;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(':'), list.size());
    if (end > 0) parts.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return parts;
}

/// The folders in `parent` whose names begin so, the last by name first.
std::vector<fs::path> folders(const fs::path& parent, std::string_view prefix) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator i(parent, error), end; !error && i != end; i.increment(error)) {
    if (i->path().filename().string().starts_with(prefix)) found.push_back(i->path());
  }
  std::ranges::sort(found, std::greater());
  return found;
}

/// Where Python's packages of CUDA put libraries, below a prefix.
void add_python(std::vector<fs::path>& list, const fs::path& prefix) {
  for (const fs::path& python : folders(prefix / "lib", "python3")) {
    for (const char* const packages : {"site-packages", "dist-packages"}) {
      const fs::path nvidia = python / packages / "nvidia";
      for (const char* const part :
           {"cu13/lib", "cuda_nvrtc/lib", "cublas/lib", "cudnn/lib", "nccl/lib", "nvtx/lib"}) {
        std::error_code error;
        if (fs::is_directory(nvidia / part, error)) list.push_back(nvidia / part);
      }
    }
  }
}

/// The program that this process was started as; empty if it was not named by its path.
fs::path own_program() {
  std::string name;
  std::getline(std::ifstream("/proc/self/cmdline", std::ios::binary), name, '\0');
  return name.find('/') != std::string::npos ? fs::path(name) : fs::path();
}

/// The prefixes of a Python: of an environment, whose program is a link, and of where that leads.
void add_prefixes(std::vector<fs::path>& list, const fs::path& program) {
  std::error_code error;
  for (const fs::path& file : {fs::absolute(program, error), fs::canonical(program, error)}) {
    const fs::path prefix = file.parent_path().parent_path();
    if (!file.empty() && std::ranges::find(list, prefix) == list.end()) list.push_back(prefix);
  }
}

/// Of the Pythons that may be meant: the one that runs, an environment that is active, the one that
/// PATH finds.
std::vector<fs::path> python_prefixes() {
  std::vector<fs::path> list;
  if (const fs::path own = own_program(); own.filename().string().starts_with("python"))
    add_prefixes(list, own);
  for (const char* const active : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const std::string prefix = environment_text(active); !prefix.empty())
      list.emplace_back(prefix);
  }
  for (const std::string& folder : split(environment_text("PATH"))) {
    std::error_code error;
    if (!fs::exists(fs::path(folder) / "python3", error)) continue;
    add_prefixes(list, fs::path(folder) / "python3");
    break;
  }
  list.emplace_back("/usr/local");
  return list;
}

/// Folders that the user names, and folders that are usual.
std::vector<fs::path> named_folders() {
  std::vector<fs::path> list;
  for (const std::string& name : split(environment_text("NITINOL_CUDA_PATH"))) {
    list.emplace_back(name);
    for (const char* const below :
         {"lib64", "lib", "nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib", "nvidia/cublas/lib",
          "nvidia/cudnn/lib", "nvidia/nccl/lib", "nvidia/nvtx/lib"}) {
      std::error_code error;
      if (fs::is_directory(fs::path(name) / below, error)) list.push_back(fs::path(name) / below);
    }
  }
  return list;
}

std::vector<fs::path> usual_folders() {
  std::vector<fs::path> list = {"/usr/local/cuda/lib64"};
  for (const char* const prefix : {"cuda-13", "cuda-12"}) {
    for (const fs::path& cuda : folders("/usr/local", prefix)) list.push_back(cuda / "lib64");
  }
  // A distribution's, those that containers mount, Windows's, an environment of conda's.
  for (const char* const usual : {"/usr/lib/x86_64-linux-gnu", "/usr/local/nvidia/lib64",
                                  "/usr/local/nvidia/lib", "/usr/lib/wsl/lib"})
    list.emplace_back(usual);
  if (const fs::path conda = environment_text("CONDA_PREFIX"); !conda.empty()) {
    list.push_back(conda / "lib");
    list.push_back(conda / "targets/x86_64-linux/lib");
  }
  for (const fs::path& prefix : python_prefixes()) add_python(list, prefix);
  for (const fs::path& project : folders("/opt", "")) add_python(list, project / ".venv");
  return list;
}

/// Whether a folder, by any name and behind any link, is one of stubs.
bool is_of_stubs(const fs::path& folder) {
  std::error_code error;
  const fs::path real = fs::weakly_canonical(folder, error);
  return (real.has_filename() ? real : real.parent_path()).filename() == "stubs";
}

/// A library as it is looked for.
struct Search {
  std::vector<std::string> names;  ///< file names, the best first
  bool has_builtins = false;       ///< NVRTC opens a second library by its name alone
  std::vector<PlaceTried> tried = {};
  void* handle = nullptr;

  void run() {
    for (const fs::path& folder : named_folders()) try_folder(folder);
    for (const std::string& name : names) try_name(name, RTLD_NOLOAD, "in this process");
    for (const std::string& name : names) try_name(name, 0, "by the loader");
    for (const fs::path& folder : usual_folders()) try_folder(folder);
  }

 private:
  void try_name(const std::string& name, int flags, const char* how) {
    if (handle != nullptr) return;
    handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | flags);
    tried.push_back({fmt::format("{} {}", name, how), handle != nullptr ? "" : "not found"});
  }

  void try_folder(const fs::path& folder) {
    if (handle != nullptr) return;
    if (is_of_stubs(folder)) {
      tried.push_back({folder.string(), "stubs are for the linker"});
      return;
    }
    for (const std::string& name : names) {
      const fs::path file = folder / name;
      std::error_code error;
      if (!fs::exists(file, error)) continue;
      if (has_builtins) open_builtins(folder);
      handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
      const char* const why = handle == nullptr ? ::dlerror() : nullptr;
      tried.push_back({file.string(), why != nullptr ? why : ""});
      if (handle != nullptr) return;
    }
    if (tried.empty() || !tried.back().place.starts_with(folder.string()))
      tried.push_back({folder.string(), "not there"});
  }

  /// A package of Python's has no path in the library to its builtins; once open, they are found.
  static void open_builtins(const fs::path& folder) {
    for (const fs::path& file : folders(folder, "libnvrtc-builtins.so")) {
      if (::dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr) return;
    }
  }
};

template <class Table>
struct Opened {
  Search search;
  Table table = {};
  std::string missing = {};  ///< why it cannot be used; empty if it can
};

/// Fills a table with the functions of the names in `names`, one for each field.
template <class Table>
void fill(Opened<Table>& opened, std::span<const char* const> names) {
  opened.search.run();
  if (opened.search.handle == nullptr) {
    opened.missing = "it was not found";
    return;
  }
  static_assert(sizeof(Table) % sizeof(void*) == 0);
  auto* const fields = reinterpret_cast<void**>(&opened.table);
  std::size_t i = 0;
  for (const char* const name : names) {
    fields[i] = ::dlsym(opened.search.handle, name);
    if (fields[i++] == nullptr && opened.missing.empty())
      opened.missing = fmt::format("{} has no function {}", opened.search.tried.back().place, name);
  }
  if (i != sizeof(Table) / sizeof(void*))
    throw Error(ErrorKind::internal, {.where = "CUDA", .what = "a table and its names differ"});
}

/// The newest major version of CUDA whose code the driver loads; without a driver the newest known.
int newest_for_driver() {
  int version = 0;
  if (!has_driver() || driver().cuDriverGetVersion(&version) != 0) return newest_major;
  constexpr int of_major = 1000;
  return std::clamp(version / of_major, oldest_major, newest_major);
}

std::vector<std::string> names_of_nvrtc() {
  std::vector<std::string> names;
  for (int major = newest_for_driver(); major >= oldest_major; --major)
    names.push_back(fmt::format("libnvrtc.so.{}", major));
  return names;
}

const Opened<Nvrtc>& opened_nvrtc() {
  static const Opened<Nvrtc>& opened = *[] {
    auto* const made =
        new Opened<Nvrtc>{.search = {.names = names_of_nvrtc(), .has_builtins = true}};
    static constexpr const char* names[] = {
        "nvrtcVersion",          "nvrtcCreateProgram",     "nvrtcCompileProgram",
        "nvrtcGetCUBINSize",     "nvrtcGetCUBIN",          "nvrtcGetPTXSize",
        "nvrtcGetPTX",           "nvrtcGetProgramLogSize", "nvrtcGetProgramLog",
        "nvrtcDestroyProgram",   "nvrtcGetErrorString",    "nvrtcGetNumSupportedArchs",
        "nvrtcGetSupportedArchs"};
    fill(*made, names);
    return made;
  }();
  return opened;
}

constinit std::atomic<bool> is_child = false;

/// What cuInit() says, in words.
std::string said_by_init(const Driver& driver) {
  ::pthread_atfork(nullptr, nullptr, [] { is_child.store(true, std::memory_order_relaxed); });
  constexpr int stub_library = 34, no_device = 100;
  const int result = driver.cuInit(0);
  if (result == 0) return {};
  if (result == stub_library) return "it is a stub, not a driver (error 34)";
  if (result == no_device) return "the driver sees no device (error 100)";
  const char* name = nullptr;
  driver.cuGetErrorName(result, &name);
  return fmt::format("cuInit failed with error {} ({})", result, name != nullptr ? name : "?");
}

const Opened<Driver>& opened_driver() {
  static const Opened<Driver>& opened = *[] {
    auto* const made = new Opened<Driver>{.search = {.names = {"libcuda.so.1"}}};
    fill(*made, driver_functions());
    if (made->missing.empty()) made->missing = said_by_init(made->table);
    return made;
  }();
  return opened;
}

const Opened<CublasLt>& opened_cublas_lt() {
  static const Opened<CublasLt>& opened = *[] {
    auto* const made = new Opened<CublasLt>{.search = {.names = {}}};
    const int known = has_nvrtc() ? nvrtc_version() / 1000 : 0;
    for (int major = newest_for_driver(); major >= oldest_major; --major) {
      if (known == 0 || known == major)
        made->search.names.push_back(fmt::format("libcublasLt.so.{}", major));
    }
    static constexpr const char* names[] = {"cublasLtGetVersion",
                                            "cublasLtCreate",
                                            "cublasLtDestroy",
                                            "cublasLtMatmulDescCreate",
                                            "cublasLtMatmulDescDestroy",
                                            "cublasLtMatmulDescSetAttribute",
                                            "cublasLtMatrixLayoutCreate",
                                            "cublasLtMatrixLayoutDestroy",
                                            "cublasLtMatrixLayoutSetAttribute",
                                            "cublasLtMatmulPreferenceCreate",
                                            "cublasLtMatmulPreferenceDestroy",
                                            "cublasLtMatmulPreferenceSetAttribute",
                                            "cublasLtMatmulAlgoGetHeuristic",
                                            "cublasLtMatmulAlgoCheck",
                                            "cublasLtMatmulAlgoConfigGetAttribute",
                                            "cublasLtMatmul"};
    fill(*made, names);
    return made;
  }();
  return opened;
}

const Opened<Cudnn>& opened_cudnn() {
  static const Opened<Cudnn>& opened = *[] {
    auto* const made = new Opened<Cudnn>{.search = {.names = {"libcudnn.so.9"}}};
    static constexpr const char* names[] = {"cudnnGetVersion",
                                            "cudnnGetCudartVersion",
                                            "cudnnGetErrorString",
                                            "cudnnCreate",
                                            "cudnnDestroy",
                                            "cudnnSetStream",
                                            "cudnnCreateTensorDescriptor",
                                            "cudnnDestroyTensorDescriptor",
                                            "cudnnSetTensor4dDescriptorEx",
                                            "cudnnCreateFilterDescriptor",
                                            "cudnnDestroyFilterDescriptor",
                                            "cudnnSetFilter4dDescriptor",
                                            "cudnnCreateConvolutionDescriptor",
                                            "cudnnDestroyConvolutionDescriptor",
                                            "cudnnSetConvolution2dDescriptor",
                                            "cudnnSetConvolutionGroupCount",
                                            "cudnnSetConvolutionMathType",
                                            "cudnnGetConvolutionForwardAlgorithm_v7",
                                            "cudnnGetConvolutionForwardWorkspaceSize",
                                            "cudnnConvolutionForward",
                                            "cudnnGetConvolutionBackwardDataAlgorithm_v7",
                                            "cudnnGetConvolutionBackwardDataWorkspaceSize",
                                            "cudnnConvolutionBackwardData",
                                            "cudnnGetConvolutionBackwardFilterAlgorithm_v7",
                                            "cudnnGetConvolutionBackwardFilterWorkspaceSize",
                                            "cudnnConvolutionBackwardFilter"};
    fill(*made, names);
    if (!made->missing.empty()) return made;
    constexpr std::size_t of_major = 1000;
    const std::size_t major = made->table.cudnnGetCudartVersion() / of_major;
    if (has_nvrtc() && major != static_cast<std::size_t>(nvrtc_version()) / of_major)
      made->missing = fmt::format("it was made for CUDA {}, and NVRTC is another's", major);
    return made;
  }();
  return opened;
}

const Opened<Nccl>& opened_nccl() {
  static const Opened<Nccl>& opened = *[] {
    auto* const made = new Opened<Nccl>{.search = {.names = {"libnccl.so.2"}}};
    static constexpr const char* names[] = {
        "ncclGetVersion", "ncclGetUniqueId",       "ncclCommInitRankConfig",
        "ncclCommAbort",  "ncclCommGetAsyncError", "ncclGetErrorString",
        "ncclGroupStart", "ncclGroupEnd",          "ncclSend",
        "ncclRecv"};
    fill(*made, names);
    return made;
  }();
  return opened;
}

const Opened<Nvtx>& opened_nvtx() {
  static const Opened<Nvtx>& opened = *[] {
    auto* const made =
        new Opened<Nvtx>{.search = {.names = {"libnvtx3interop.so.1", "libnvToolsExt.so.1"}}};
    if (environment_text("NVTX_INJECTION64_PATH").empty()) {
      made->missing = "no tool asks for it";
      return made;
    }
    static constexpr const char* names[] = {"nvtxRangePushA", "nvtxRangePop"};
    fill(*made, names);
    if (!made->missing.empty())
      log(LogLevel::info,
          "kernels have no names in the tool that traces: no library of NVTX is "
          "there (libnvtx3interop.so.1, libnvToolsExt.so.1)");
    return made;
  }();
  return opened;
}

/// Why it cannot be used, with each place where it was looked for; empty if it can.
template <class Table>
std::string missing_text(const Opened<Table>& opened) {
  if (opened.missing.empty()) return {};
  std::string text = fmt::format("{}. Looked for:", opened.missing);
  for (const PlaceTried& tried : opened.search.tried)
    text += fmt::format("\n  {}{}{}", tried.place, tried.why.empty() ? "" : ": ", tried.why);
  return text;
}

template <class Table>
const Table& table_of(const Opened<Table>& opened, std::string_view name, const char* fix) {
  if (opened.missing.empty()) return opened.table;
  throw Error(ErrorKind::device,
              {.where = std::string(name), .what = missing_text(opened), .fix = fix});
}

}  // namespace

const Nvrtc& nvrtc() {
  return table_of(opened_nvrtc(), "CUDA's compiler (NVRTC)",
                  "Install CUDA 12 or 13, or the Python package nvidia-cuda-nvrtc, or let "
                  "NITINOL_CUDA_PATH name its folder.");
}

std::span<const char* const> driver_functions() {
  static constexpr const char* names[] = {"cuInit",
                                          "cuDriverGetVersion",
                                          "cuGetErrorName",
                                          "cuDeviceGetCount",
                                          "cuDeviceGet",
                                          "cuDeviceGetName",
                                          "cuDeviceGetAttribute",
                                          "cuDeviceTotalMem_v2",
                                          "cuDeviceGetUuid_v2",
                                          "cuDevicePrimaryCtxRetain",
                                          "cuCtxGetCurrent",
                                          "cuCtxSetCurrent",
                                          "cuCtxEnablePeerAccess",
                                          "cuStreamCreate",
                                          "cuStreamSynchronize",
                                          "cuStreamWaitEvent",
                                          "cuMemAlloc_v2",
                                          "cuMemFree_v2",
                                          "cuMemHostAlloc",
                                          "cuMemcpyHtoDAsync_v2",
                                          "cuMemcpyDtoHAsync_v2",
                                          "cuMemcpyDtoDAsync_v2",
                                          "cuMemcpyPeerAsync",
                                          "cuMemsetD8Async",
                                          "cuMemsetD16Async",
                                          "cuMemsetD32Async",
                                          "cuMemsetD2D32Async",
                                          "cuModuleLoadData",
                                          "cuModuleUnload",
                                          "cuModuleGetFunction",
                                          "cuLaunchKernel",
                                          "cuEventCreate",
                                          "cuEventDestroy_v2",
                                          "cuEventRecord",
                                          "cuEventQuery",
                                          "cuEventSynchronize",
                                          "cuEventElapsedTime",
                                          "cuStreamBeginCapture_v2",
                                          "cuStreamEndCapture",
                                          "cuGraphCreate",
                                          "cuGraphDestroy",
                                          "cuGraphAddKernelNode_v2",
                                          "cuGraphAddChildGraphNode",
                                          "cuGraphInstantiateWithFlags",
                                          "cuGraphExecKernelNodeSetParams_v2",
                                          "cuGraphExecChildGraphNodeSetParams",
                                          "cuGraphLaunch",
                                          "cuGraphExecDestroy"};
  return names;
}

const Driver& driver() {
  return table_of(opened_driver(), "CUDA's driver",
                  "Install NVIDIA's driver on a machine with a GPU.");
}

const CublasLt& cublas_lt() {
  return table_of(opened_cublas_lt(), "CUDA's matrix products (cuBLASLt)",
                  "Install CUDA 12 or 13, or the Python package nvidia-cublas, or let "
                  "NITINOL_CUDA_PATH name its folder.");
}

const Cudnn& cudnn() {
  return table_of(opened_cudnn(), "CUDA's convolutions (cuDNN)",
                  "Install cuDNN 9, or the Python package nvidia-cudnn-cu13, or let "
                  "NITINOL_CUDA_PATH name its folder.");
}

const Nccl& nccl() {
  return table_of(opened_nccl(), "CUDA's messages between processes (NCCL)",
                  "Install NCCL 2.14 or later, or the Python package nvidia-nccl-cu13, or let "
                  "NITINOL_CUDA_PATH name its folder.");
}

const Nvtx* nvtx() {
  const Opened<Nvtx>& opened = opened_nvtx();
  return opened.missing.empty() ? &opened.table : nullptr;
}

int nvrtc_version() {
  int major = 0, minor = 0;
  nvrtc().nvrtcVersion(&major, &minor);
  return 1000 * major + 10 * minor;
}

namespace {

/// "13.0", which stands in the name of the builtins beside an NVRTC; empty if it is not told so.
std::string version_beside(const fs::path& file) {
  constexpr std::string_view builtins = "libnvrtc-builtins.so.";
  const std::string major = file.extension().string().substr(1) + ".";
  std::string version;
  for (const fs::path& beside : folders(file.parent_path(), builtins)) {
    const std::string found = beside.filename().string().substr(builtins.size());
    if (!found.starts_with(major)) continue;
    const std::string two = found.substr(0, found.find('.', major.size()));
    if (!version.empty() && version != two) return {};
    version = two;
  }
  return version;
}

}  // namespace

const std::string& nvrtc_identity() {
  static const std::string identity = [] {
    std::vector<fs::path> list = named_folders();
    const std::vector<fs::path> usual = usual_folders();
    list.insert(list.end(), usual.begin(), usual.end());
    for (const fs::path& folder : list) {
      for (const std::string& name : names_of_nvrtc()) {
        std::error_code error;
        if (is_of_stubs(folder) || !fs::exists(folder / name, error)) continue;
        if (const std::string version = version_beside(folder / name); !version.empty())
          return version;
      }
    }
    constexpr int of_major = 1000, of_minor = 10;
    if (!has_nvrtc()) return std::string("none");
    const int version = nvrtc_version();
    return fmt::format("{}.{}", version / of_major, version % of_major / of_minor);
  }();
  return identity;
}

bool has_nvrtc() {
  return opened_nvrtc().missing.empty();
}

bool has_driver() {
  return opened_driver().missing.empty();
}

bool has_cublas_lt() {
  return opened_cublas_lt().missing.empty();
}

bool has_cudnn() {
  return opened_cudnn().missing.empty();
}

bool has_nccl() {
  return opened_nccl().missing.empty();
}

bool is_forked_off() {
  return is_child.load(std::memory_order_relaxed);
}

std::string missing_driver() {
  return missing_text(opened_driver());
}

std::vector<PlaceTried> places_of_nvrtc() {
  return opened_nvrtc().search.tried;
}

}  // namespace nitinol::cuda
