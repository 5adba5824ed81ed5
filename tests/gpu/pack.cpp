#include "tests/gpu/pack.h"

#include "backends/cuda/text/printer.h"
#include "core/error.h"

#include <fmt/format.h>

#include <istream>
#include <ostream>

namespace nitinol::test {
namespace {

void write_bytes(std::ostream& out, const void* from, std::size_t bytes) {
  const auto size = static_cast<uint64_t>(bytes);
  out.write(reinterpret_cast<const char*>(&size), sizeof size);
  out.write(static_cast<const char*>(from), static_cast<std::streamsize>(bytes));
}

template <class Bytes>
Bytes read_bytes(std::istream& in) {
  uint64_t size = 0;
  in.read(reinterpret_cast<char*>(&size), sizeof size);
  if (!in || size > uint64_t{1} << 30)
    throw Error(ErrorKind::io, {.where = "pack", .what = "this is no pack of cubins"});
  Bytes bytes(static_cast<std::size_t>(size), {});
  in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
  return bytes;
}

}  // namespace

void Pack::add(const Kernel& kernel, const cuda::Schedule& schedule,
               std::span<const int> architectures) {
  const std::string text = cuda::print(kernel, schedule);
  for (const int architecture : architectures) {
    const auto [found, is_new] = cubins_.try_emplace({text, architecture});
    if (is_new)
      found->second =
          cuda::compile_text(cuda::text_of({&kernel, schedule, architecture}), architecture);
  }
}

const cuda::Cubin& Pack::find(const Kernel& kernel, const cuda::Schedule& schedule,
                              int architecture) const {
  const std::string text = cuda::print(kernel, schedule);
  for (int nearest = architecture; nearest >= architecture / 10 * 10; --nearest) {
    const auto found = cubins_.find({text, nearest});
    if (found != cubins_.end()) return found->second;
  }
  throw Error(ErrorKind::device,
              {.where = "pack",
               .what = fmt::format("no cubin for sm_{} of a kernel in it", architecture),
               .fix = "Make the pack for this architecture."});
}

void Pack::write(std::ostream& out, Case value) {
  std::vector<CaseMemory> memory = value.memory;
  for (CaseMemory& of : value.memory) of.before = of.after = {};
  test::write(out, value);
  for (const CaseMemory& of : memory) {
    write_once(out, of.before);
    write_once(out, of.after);
  }
}

std::optional<Case> Pack::read_case(std::istream& in) {
  std::optional<Case> value = test::read_case(in);
  if (!value) return value;
  for (CaseMemory& of : value->memory) {
    of.before = read_once(in);
    of.after = read_once(in);
  }
  return value;
}

void Pack::write_once(std::ostream& out, const Bytes& bytes) {
  std::string content(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto [found, is_new] =
      written_.try_emplace(std::move(content), static_cast<uint32_t>(written_.size()));
  out.write(reinterpret_cast<const char*>(&found->second), sizeof found->second);
  if (is_new) write_bytes(out, bytes.data(), bytes.size());
}

Pack::Bytes Pack::read_once(std::istream& in) {
  uint32_t number = 0;
  in.read(reinterpret_cast<char*>(&number), sizeof number);
  if (!in || number > read_.size())
    throw Error(ErrorKind::io, {.where = "pack", .what = "the pack is cut off"});
  if (number == read_.size()) read_.push_back(read_bytes<Bytes>(in));
  return read_[number];
}

void Pack::write(std::ostream& out) const {
  const auto count = static_cast<uint64_t>(cubins_.size());
  out.write(reinterpret_cast<const char*>(&count), sizeof count);
  for (const auto& [key, cubin] : cubins_) {
    write_bytes(out, key.first.data(), key.first.size());
    out.write(reinterpret_cast<const char*>(&key.second), sizeof key.second);
    write_bytes(out, cubin.data(), cubin.size());
  }
}

void Pack::read(std::istream& in) {
  uint64_t count = 0;
  in.read(reinterpret_cast<char*>(&count), sizeof count);
  for (; in && count > 0; --count) {
    auto text = read_bytes<std::string>(in);
    int architecture = 0;
    in.read(reinterpret_cast<char*>(&architecture), sizeof architecture);
    cubins_[{std::move(text), architecture}] = read_bytes<cuda::Cubin>(in);
  }
  if (!in) throw Error(ErrorKind::io, {.where = "pack", .what = "the pack is cut off"});
}

}  // namespace nitinol::test
