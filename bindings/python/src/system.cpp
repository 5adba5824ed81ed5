// Devices, threads, memory, files, and what the library says of itself.
#include "bindings/python/src/bind.h"
#include "bindings/python/src/errors.h"

namespace nitinol::python {
namespace {

constexpr const char* device_doc = "The host unless another is given.";

Device device_or_default(const char* where, nb::handle device) {
  return convert<std::optional<Device>>({where, "device", device}).value_or(default_device());
}

void bind_devices(nb::module_& m) {
  m.def(
      "devices",
      [] {
        nb::list all;
        for (const DeviceInfo& info : devices()) {
          nb::dict one;
          one["device"] = nb::cast(info.device);
          one["description"] = info.description;
          one["missing"] = info.missing;
          all.append(one);
        }
        return all;
      },
      nb::sig("def devices() -> list[dict[str, typing.Any]]"),
      "All devices that this library knows of, the host first; `missing` says why one cannot be\n"
      "used.");
  m.attr("_most_axes") = max_rank;
  m.def(
      "default_device", [] { return default_device(); },
      "Where tensors are made that come from numbers and host data alone.");
  m.def(
      "set_default_device",
      [](nb::handle device) {
        set_default_device(convert<Device>({"set_default_device", "device", device}));
      },
      nb::arg("device"), nb::sig("def set_default_device(device: DeviceLike) -> None"),
      "Where new tensors are made unless a device is given.");
  m.def(
      "synchronize",
      [](nb::handle device) {
        const Device of = device_or_default("synchronize", device);
        const Unlocked release;
        synchronize(of);
      },
      nb::arg("device") = nb::none(),
      nb::sig("def synchronize(device: DeviceLike | None = None) -> None"),
      "Waits until the device has done all that was asked of it, as before looking at a clock.");
  m.def("num_threads", &num_threads, "How many threads compute, at most.");
  m.def("set_num_threads", &set_num_threads, nb::arg("count"), "For the whole process.");
}

nb::object statistics_of(Device device) {
  const MemoryStatistics statistics = memory_statistics(device);
  nb::dict all;
  all["in_use"] = statistics.in_use;
  all["peak"] = statistics.peak;
  all["cached"] = statistics.cached;
  all["allocations"] = statistics.allocations;
  all["system_allocations"] = statistics.system_allocations;
  return all;
}

void bind_memory(nb::module_& m) {
  m.def(
      "memory_statistics",
      [](nb::handle device) {
        return statistics_of(convert<std::optional<Device>>({"memory_statistics", "device", device})
                                 .value_or(Device{}));
      },
      nb::arg("device") = nb::none(),
      nb::sig("def memory_statistics(device: DeviceLike | None = None) -> dict[str, int]"),
      device_doc);
  m.def(
      "reset_peak_memory",
      [](nb::handle device) {
        reset_peak_memory(convert<std::optional<Device>>({"reset_peak_memory", "device", device})
                              .value_or(Device{}));
      },
      nb::arg("device") = nb::none(),
      nb::sig("def reset_peak_memory(device: DeviceLike | None = None) -> None"),
      "Gives cached memory back to the system and lets the peak begin anew.");
  m.def(
      "executable_statistics",
      [] {
        const ExecutableStatistics statistics = executable_statistics();
        nb::dict all;
        all["hits"] = statistics.hits;
        all["prepared"] = statistics.prepared;
        all["from_disk"] = statistics.from_disk;
        all["shipped"] = statistics.shipped;
        all["evicted"] = statistics.evicted;
        all["entries"] = statistics.entries;
        all["bytes"] = statistics.bytes;
        all["limit"] = statistics.limit;
        return all;
      },
      nb::sig("def executable_statistics() -> dict[str, int]"),
      "Counts of the cache of prepared steps, which eager and compiled code share.");
  m.def("set_executable_limit", &set_executable_limit, nb::arg("bytes"),
        "Most bytes that the cache of prepared steps keeps.");
  m.def(
      "clear_executables", [] { unlocked(clear_executables); },
      "Forgets all prepared steps; calls that run and compiled functions keep theirs.");
}

/// A dict of what a file holds.
nb::dict dict_of(std::vector<NamedTensor>&& tensors) {
  nb::dict all;
  for (auto& [name, tensor] : tensors)
    all[nb::str(name.c_str(), name.size())] = to_python(std::move(tensor));
  return all;
}

std::vector<NamedTensor> named_tensors(const char* where, const nb::dict& tensors) {
  std::vector<NamedTensor> all;
  for (const auto [name, tensor] : tensors)
    all.emplace_back(convert<std::string>({where, "a name", name}),
                     convert<Tensor>({where, "a tensor", tensor}));
  return all;
}

void bind_images(nb::module_& m) {
  m.def(
      "load_image",
      [](nb::handle path, nb::handle channels, nb::handle most_pixels) {
        const auto file = convert<std::filesystem::path>({"load_image", "path", path});
        const ImageOptions options = {
            .channels = convert<int64_t>({"load_image", "channels", channels}),
            .most_pixels = convert<int64_t>({"load_image", "most_pixels", most_pixels})};
        return to_python(unlocked([&] { return load_image(file, options); }));
      },
      nb::arg("path"), nb::kw_only(), nb::arg("channels") = 0,
      nb::arg("most_pixels") = ImageOptions().most_pixels,
      nb::sig("def load_image(path: str | os.PathLike[str], *, channels: int = 0, "
              "most_pixels: int = 2**28) -> Tensor"),
      "Reads a PNG or JPEG file as uint8 [height, width, channels]. channels: 1, grey; 2, grey "
      "and\n"
      "alpha; 3, red, green and blue; 4, these and alpha; 0, as the file has it. A camera's\n"
      "orientation is not applied. The file is not trusted: what is damaged, cut short, or has "
      "more\n"
      "than most_pixels pixels is an Error.");
  m.def(
      "save_image",
      [](nb::handle path, nb::handle x) {
        const auto file = convert<std::filesystem::path>({"save_image", "path", path});
        const auto image = convert<Tensor>({"save_image", "x", x});
        const Unlocked release;
        save_image(file, image);
      },
      nb::arg("path"), nb::arg("x"),
      nb::sig("def save_image(path: str | os.PathLike[str], x: TensorLike) -> None"),
      "Writes a PNG file of uint8 [height, width] or [height, width, 1 to 4 channels].");
}

void bind_npz(nb::module_& m) {
  m.def(
      "save_npz",
      [](nb::handle path, nb::dict tensors, nb::handle compressed) {
        const auto file = convert<std::filesystem::path>({"save_npz", "path", path});
        const std::vector<NamedTensor> all = named_tensors("save_npz", tensors);
        const NpzOptions options = {.is_compressed =
                                        convert<bool>({"save_npz", "compressed", compressed})};
        const Unlocked release;
        save_npz(file, all, options);
      },
      nb::arg("path"), nb::arg("tensors"), nb::kw_only(), nb::arg("compressed") = false,
      nb::sig("def save_npz(path: str | os.PathLike[str], tensors: dict[str, Tensor], *, "
              "compressed: bool = False) -> None"),
      "Writes named tensors to a file that np.load reads, too; it appears complete or not at all.");
  m.def(
      "load_npz",
      [](nb::handle path) {
        const auto file = convert<std::filesystem::path>({"load_npz", "path", path});
        return dict_of(unlocked([&] { return load_npz(file); }));
      },
      nb::arg("path"), nb::sig("def load_npz(path: str | os.PathLike[str]) -> dict[str, Tensor]"),
      "All arrays of a file that np.savez or np.savez_compressed wrote, which is not trusted.");
}

void bind_files(nb::module_& m) {
  m.def(
      "save_npy",
      [](nb::handle path, nb::handle x) {
        const auto file = convert<std::filesystem::path>({"save_npy", "path", path});
        const auto tensor = convert<Tensor>({"save_npy", "x", x});
        const Unlocked release;
        save_npy(file, tensor);
      },
      nb::arg("path"), nb::arg("x"),
      nb::sig("def save_npy(path: str | os.PathLike[str], x: TensorLike) -> None"),
      "Writes a tensor to a file that np.load reads, too; it appears complete or not at all.");
  m.def(
      "load_npy",
      [](nb::handle path) {
        const auto file = convert<std::filesystem::path>({"load_npy", "path", path});
        return to_python(unlocked([&] { return load_npy(file); }));
      },
      nb::arg("path"), nb::sig("def load_npy(path: str | os.PathLike[str]) -> Tensor"),
      "Reads a .npy file. The file is not trusted: an Error says what is wrong with it.");
  m.def(
      "load_idx",
      [](nb::handle path) {
        const auto file = convert<std::filesystem::path>({"load_idx", "path", path});
        return to_python(unlocked([&] { return load_idx(file); }));
      },
      nb::arg("path"), nb::sig("def load_idx(path: str | os.PathLike[str]) -> Tensor"),
      "Reads an IDX file, the format of the MNIST digits, which is not trusted.");
  bind_npz(m);
  bind_images(m);
  m.def("_load_csv",
        [](nb::handle path, nb::handle separator, nb::handle header, nb::handle dtype) {
          const auto file = convert<std::filesystem::path>({"load_csv", "path", path});
          const auto text = convert<std::string>({"load_csv", "separator", separator});
          if (text.size() != 1) throw_type({"load_csv", "separator", separator}, "one character");
          const CsvOptions options = {.separator = text[0],
                                      .has_header = convert<bool>({"load_csv", "header", header}),
                                      .dtype = convert<DType>({"load_csv", "dtype", dtype})};
          CsvFile found = unlocked([&] { return load_csv(file, options); });
          nb::list names;
          for (const std::string& name : found.names)
            names.append(nb::str(name.c_str(), name.size()));
          return nb::make_tuple(to_python(std::move(found.values)), names);
        });
  m.def(
      "save_safetensors",
      [](nb::handle path, nb::dict tensors, nb::dict metadata) {
        const auto file = convert<std::filesystem::path>({"save_safetensors", "path", path});
        const std::vector<NamedTensor> all = named_tensors("save_safetensors", tensors);
        std::map<std::string, std::string> words;
        for (const auto [key, value] : metadata)
          words[convert<std::string>({"save_safetensors", "a key of metadata", key})] =
              convert<std::string>({"save_safetensors", "a value of metadata", value});
        const Unlocked release;
        save_safetensors(file, all, words);
      },
      nb::arg("path"), nb::arg("tensors"), nb::arg("metadata") = nb::dict(),
      nb::sig("def save_safetensors(path: str | os.PathLike[str], tensors: dict[str, Tensor], "
              "metadata: dict[str, str] = {}) -> None"),
      "Writes named tensors, so that the file appears complete or not at all.");
  m.def(
      "load_safetensors",
      [](nb::handle path) {
        const auto file = convert<std::filesystem::path>({"load_safetensors", "path", path});
        return dict_of(unlocked([&] { return load_safetensors(file); }).tensors);
      },
      nb::arg("path"),
      nb::sig("def load_safetensors(path: str | os.PathLike[str]) -> dict[str, Tensor]"),
      "The named tensors of a file, which is not trusted.");
}

}  // namespace

void bind_system(nb::module_& m) {
  bind_devices(m);
  bind_memory(m);
  bind_files(m);
  m.def("build_info", &build_info, "One line per fact of this build and this machine.");
  m.def(
      "set_log_level",
      [](const std::string& level) {
        for (const LogLevel each :
             {LogLevel::debug, LogLevel::info, LogLevel::warning, LogLevel::off}) {
          if (level == name_of(each)) return set_log_level(each);
        }
        throw_python(class_of(ErrorKind::value),
                     "set_log_level: level is '" + level +
                         "'; expected 'debug', 'info', 'warning' or 'off'");
      },
      nb::arg("level"), "From which level on messages are written to stderr.");
}

}  // namespace nitinol::python
