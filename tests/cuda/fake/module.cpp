#include "tests/cuda/fake/module.h"

#include "tests/cuda/fake/fake.h"
#include "tests/replay/object_name.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

namespace nitinol::test {
namespace {

std::string read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream all;
  all << file.rdbuf();
  return all.str();
}

/// Where the function of a text is that runs its threads.
struct Object {
  std::string path, function;
};

/// What nitinol_replay has compiled already, by name: NITINOL_FAKE_OBJECTS is the list it wrote.
const std::map<std::string, Object>& objects_made_before() {
  static const std::map<std::string, Object> objects = [] {
    std::map<std::string, Object> made;
    const char* const list = std::getenv("NITINOL_FAKE_OBJECTS");
    std::ifstream file(list != nullptr ? list : "");
    Object object;
    for (std::string name; file >> name >> object.path >> object.function;) made[name] = object;
    return made;
  }();
  return objects;
}

/// The shared object of a text, from the folder of those made before or made now; without a path if
/// it cannot be compiled.
Object object_of(const Module& module) {
  static const std::string host = read_all(NITINOL_SHIM) + NITINOL_HOST_COMPILER;
  const std::string name = object_name(module.text, host);
  const auto found = objects_made_before().find(name);
  if (found != objects_made_before().end()) return found->second;
  const char* const set = std::getenv("NITINOL_FAKE_CACHE");
  const std::string folder = set != nullptr ? set : NITINOL_FAKE_CACHE;
  ::mkdir(folder.c_str(), 0700);
  const std::string base = folder + "/" + name;
  if (::access((base + ".so").c_str(), R_OK) == 0) return {base + ".so", "run"};
  const std::string own = base + "." + std::to_string(::getpid());
  std::ofstream file(own + ".cpp");
  file << "#include \"" NITINOL_SHIM "\"\n" << module.text;
  file << "extern \"C\" void run(void* arguments, u32 entry) {\n"
          "  if (entry == ~0u) return (void)(*(u64*)arguments = sizeof(Arguments));\n"
          "  const auto& a = *(const Arguments*)arguments;\n";
  for (uint32_t e = 0; e < module.threads.size(); ++e)
    file << "  if (entry == " << e << ") return entry" << e << "(a);\n";
  file << "}\n";
  file.close();
  const std::string command =
      NITINOL_COMPILER_OF_ONE " -o " + own + ".so " + own + ".cpp >" + own + ".log 2>&1";
  if (std::system(command.c_str()) != 0) {
    std::fprintf(stderr, "fake driver: %s.cpp does not compile, see %s.log\n", own.c_str(),
                 own.c_str());
    return {};
  }
  ::rename((own + ".so").c_str(), (base + ".so").c_str());
  for (const char* const end : {".cpp", ".log"}) ::unlink((own + end).c_str());
  return {base + ".so", "run"};
}

Shim& shim() {
  static Shim& instance = *new Shim;
  return instance;
}

bool load(Module& module) {
  static std::mutex mutex;  // launches are asked for on one thread and run on another
  const std::lock_guard lock(mutex);
  if (module.run != nullptr) return true;
  const Object object = object_of(module);
  void* const library =
      object.path.empty() ? nullptr : ::dlopen(object.path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return false;
  module.run = reinterpret_cast<Run>(::dlsym(library, object.function.c_str()));
  reinterpret_cast<void (*)(Shim*)>(::dlsym(library, "set_shim"))(&shim());
  return module.run != nullptr;
}

ThreadOrder order() {
  static const ThreadOrder order = [] {
    const char* const name = std::getenv("NITINOL_FAKE_ORDER");
    const std::string_view text = name != nullptr ? name : "";
    return text == "backward" ? ThreadOrder::backward
           : text == "random" ? ThreadOrder::random
                              : ThreadOrder::forward;
  }();
  return order;
}

std::shared_ptr<Module> module_of(std::string text, int part) {
  auto module = std::make_shared<Module>();
  module->text = std::move(text);
  module->part = part;
  const auto mark = [&] { return "KERNEL(entry" + std::to_string(module->threads.size()) + ", "; };
  for (std::size_t at; (at = module->text.find(mark())) != std::string::npos;)
    module->threads.push_back(
        static_cast<uint32_t>(std::atoi(module->text.c_str() + at + mark().size())));
  const std::size_t body = module->text.find("struct Arguments");
  const std::string_view own =
      std::string_view(module->text).substr(std::min(body, module->text.size()));
  module->waits = own.find("barrier(") != std::string_view::npos ||
                  own.find("shuffle") != std::string_view::npos ||
                  own.find("is_last(") != std::string_view::npos;
  return module;
}

}  // namespace

std::vector<std::shared_ptr<Module>> read_image(const void* image) {
  FakeImage head = {};
  std::memcpy(&head, image, sizeof head);
  if (head.magic != fake_magic) return {};
  std::string text(static_cast<const char*>(image) + sizeof head, head.bytes);
  // The words of a GPU end where those begin that all share; the shim has its own.
  constexpr const char* first_shared = "template <class T, int n> struct alignas";
  const std::size_t begin = text.find(first_shared);
  if (begin == std::string::npos) return {};
  text.erase(0, begin);
  // Each part becomes the text that it would be alone.
  std::vector<std::shared_ptr<Module>> parts;
  const auto open = [](int part) { return "namespace part" + std::to_string(part) + " {\n"; };
  std::size_t at = text.find(open(1));
  if (at == std::string::npos) return {module_of(std::move(text), 0)};
  const std::string words = text.substr(0, at);
  for (int part = 1; at != std::string::npos; ++part) {
    const std::size_t first = at + open(part).size();
    at = text.find(open(part + 1), first);
    const std::size_t end = text.rfind("}\n", at);
    std::string own = text.substr(first, end - first);
    const std::string prefix = "part" + std::to_string(part) + "_";
    for (std::size_t k = own.find(prefix); k != std::string::npos; k = own.find(prefix, k))
      own.erase(k, prefix.size());
    parts.push_back(module_of(words + own, part));
  }
  return parts;
}

void compile(const Module& module) {
  static_cast<void>(object_of(module));
}

std::vector<std::byte> arguments_of(const Function& function, const void* parameter) {
  if (!load(*function.module)) return {};
  constexpr uint32_t size_of_arguments = ~uint32_t{0};
  uint64_t bytes = 0;
  function.module->run(&bytes, size_of_arguments);
  const auto* const first = static_cast<const std::byte*>(parameter);
  return {first, first + bytes};
}

bool run_launch(const Function& function, Blocks blocks, std::span<std::byte> arguments) {
  Module& module = *function.module;
  if (!load(module)) return false;
  const auto thread = [&] { module.run(arguments.data(), function.entry); };
  const std::string failure = module.waits ? run_blocks(shim(), blocks, order(), thread)
                                           : run_plain(shim(), blocks, order(), thread);
  if (failure.empty()) return true;
  std::fprintf(stderr, "fake driver: %s\n", failure.c_str());
  return false;
}

}  // namespace nitinol::test
