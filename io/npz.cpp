#include "io/npz.h"

#include "core/error.h"
#include "eager/host_read.h"
#include "io/file.h"
#include "io/npy_header.h"
#include "io/npy_stream.h"
#include "io/zip.h"
#include "io/zip_name.h"

#include <fmt/format.h>

#include <deque>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace nitinol {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view npy_ending = ".npy";
constexpr std::size_t longest_name = io::longest_zip_name - npy_ending.size();

io::NpyName name_of_member(const char* where, std::string_view member, const fs::path& path) {
  return {.quoted = fmt::format("{} in \"{}\"", io::shown_zip_name(member), path.string()),
          .where = where,
          .writers = "np.savez or save_npz"};
}

// ---- reading

std::vector<NamedTensor> load_members(const fs::path& path) {
  io::ZipReader zip("load_npz", path);
  std::vector<NamedTensor> tensors;
  while (const std::optional<io::ZipMember> member = zip.next()) {
    const std::string_view whole = member->name;
    if (!whole.ends_with(npy_ending)) {
      throw Error(
          ErrorKind::io,
          {.where = "load_npz",
           .what = fmt::format("the member {} in \"{}\"", io::shown_zip_name(whole), path.string()),
           .expected = "a .npy file",
           .got = "another one",
           .fix = "Unpack the file, if it is a zip file of something else."});
    }
    const io::NpyName name = name_of_member("load_npz", whole, path);
    const auto read = [&](std::span<std::byte> to) { zip.read(to); };
    Tensor tensor = io::read_npy({.name = name, .size = member->size, .read = read});
    zip.check();
    tensors.emplace_back(whole.substr(0, whole.size() - npy_ending.size()), std::move(tensor));
  }
  return tensors;
}

// ---- writing

void check_names(const std::vector<NamedTensor>& tensors) {
  std::set<std::string_view> seen;
  for (const auto& [name, tensor] : tensors) {
    const auto fail = [&](std::string expected, std::string got) {
      throw Error(ErrorKind::value, {.where = "save_npz",
                                     .what = fmt::format("the name {}", io::shown_zip_name(name)),
                                     .expected = std::move(expected),
                                     .got = std::move(got)});
    };
    if (!io::is_zip_name(name)) fail("UTF-8 without NUL", "other bytes");
    if (name.size() > longest_name)
      fail(fmt::format("at most {} bytes", longest_name), std::to_string(name.size()));
    if (!seen.insert(name).second) fail("each name once", "it a second time");
  }
}

void save_members(const fs::path& path, const std::vector<NamedTensor>& tensors,
                  const NpzOptions& options, std::source_location place) {
  check_names(tensors);
  std::vector<std::string> headers;  // before there is a file: not all dtypes can be written
  for (const auto& [name, tensor] : tensors) {
    const Spec& spec = tensor.spec();
    headers.push_back(io::npy_header_text({.dtype = spec.dtype, .shape = spec.shape},
                                          name_of_member("save_npz", name, path)));
  }
  const auto method = options.is_compressed ? io::ZipMethod::deflated : io::ZipMethod::stored;
  std::deque<HostElements> elements;
  io::ZipWriter zip("save_npz", path, method);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto& [name, tensor] = tensors[i];
    elements.push_back(eager::host_read(tensor, {.what = "save_npz()", .place = place}));
    zip.add(name + std::string(npy_ending), {.text = headers[i], .elements = elements.back()});
  }
  zip.publish();
}

}  // namespace

void save_npz(const fs::path& path, const std::vector<NamedTensor>& tensors,
              const NpzOptions& options, std::source_location place) {
  eager::located(place, [&] { save_members(path, tensors, options, place); });
}

std::vector<NamedTensor> load_npz(const fs::path& path, std::source_location place) {
  return eager::located(place, [&] { return load_members(path); });
}

}  // namespace nitinol
