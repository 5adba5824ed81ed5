// Two locks, so that who adds does not wait for who writes: a tensor that is read may be the end of
// a device's long work.
#include "nn/metric_log.h"

#include "autograd/gradient.h"
#include "core/error.h"
#include "core/fork.h"
#include "core/interpreter.h"
#include "core/log.h"
#include "eager/ops/ops.h"
#include "io/file.h"
#include "nn/checks.h"
#include "nn/event_file.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <fcntl.h>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <variant>
#include <vector>

namespace nitinol::nn {

// Named, as MetricLog::Files consists of them.
namespace logged {

namespace fs = std::filesystem;

/// What was added. A histogram is a record already.
struct Record {
  std::string bytes;
};
struct Added {
  std::string name;
  double time;  ///< seconds since 1970
  int64_t step;
  std::variant<Tensor, double, std::string, Record> value;
};

/// A file that what is written is added to.
class AppendedFile {
 public:
  explicit AppendedFile(fs::path path)
      : path_(std::move(path)),
        file_("MetricLog", path_, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC) {}
  /// All of it, or nothing: readers stop at half a record.
  void append(std::string_view text) const {
    const int64_t before = file_.size();
    try {
      file_.write(std::as_bytes(std::span(text)));
    } catch (...) {
      std::error_code ignored;  // what is said is why it was not written
      fs::resize_file(path_, static_cast<std::uintmax_t>(before), ignored);
      throw;
    }
  }
  /// Whether it ends within a line, as one does whose writer was killed.
  [[nodiscard]] bool has_open_line() const {
    const int64_t size = file_.size();
    if (size == 0) return false;
    std::byte last = {};
    io::File("MetricLog", path_, O_RDONLY | O_CLOEXEC).read_at({&last, 1}, size - 1);
    return last != std::byte{'\n'};
  }

 private:
  fs::path path_;
  io::File file_;
};

}  // namespace logged

namespace {

using namespace logged;
using Json = nlohmann::ordered_json;

constexpr std::size_t most_waiting = 1000;

double time_now() {
  const auto time = std::chrono::system_clock::now().time_since_epoch();
  return std::round(std::chrono::duration<double>(time).count() * 1e6) / 1e6;
}

/// The text, with a mark for what is no UTF-8.
std::string as_utf8(const std::string& text) {
  return Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::string checked_name(const char* where, const std::string& name) {
  const auto is_control = [](char c) { return static_cast<uint8_t>(c) < 0x20 || c == 0x7F; };
  if (!name.empty() && name != "step" && name != "time" && std::ranges::none_of(name, is_control))
    return as_utf8(name);
  throw Error(ErrorKind::value,
              {.where = where,
               .what = "the name",
               .expected = "one of some characters, none of which controls, and not \"step\" or "
                           "\"time\", which each line of metrics.jsonl has",
               .got = Json(name).dump(-1, ' ', true, Json::error_handler_t::replace),
               .fix = "Slashes group curves: \"validation/loss\"."});
}

std::string host_name() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0) return "host";
  std::string plain = name;
  std::ranges::replace(plain, '/', '_');
  return plain;
}

/// Two logs of a second have files of their own.
fs::path new_event_file(const fs::path& folder, double time) {
  const fs::path name = folder / fmt::format("events.out.tfevents.{:.0f}.{}.{}", std::floor(time),
                                             host_name(), ::getpid());
  for (int number = 1;; ++number) {
    const fs::path path =
        number == 1 ? name : fs::path(fmt::format("{}.{}", name.string(), number));
    std::error_code error;
    if (!fs::exists(path, error)) return path;
  }
}

}  // namespace

/// What a log has: files, and what waits for being written.
class MetricLog::Files {
 public:
  Files(fs::path folder, const MetricLogOptions& options)
      : folder_(std::move(folder)), pause_(options.flush_seconds) {
    check_setting("MetricLog", "flush_seconds", options.flush_seconds, Interval::not_negative);
    std::error_code error;
    fs::create_directories(folder_, error);
    if (error) {
      throw Error(ErrorKind::io,
                  {.where = "MetricLog",
                   .what = fmt::format("the folder \"{}\" cannot be made", folder_.string()),
                   .got = error.message(),
                   .fix = "Check the path and its permissions."});
    }
    open();
  }

  ~Files() {
    try {
      flush();
    } catch (const std::exception& failed) {
      log(LogLevel::warning, fmt::format("MetricLog: {}: a value cannot be read: {}",
                                         folder_.string(), failed.what()));
    }
    if (lost_ > 0)
      log(LogLevel::warning,
          fmt::format("MetricLog: {}: {} values were lost", folder_.string(), lost_));
  }
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;

  void add(Added added) {
    bool is_due = false;
    {
      const std::lock_guard lock(adding_);
      forget_parent();
      waiting_.push_back(std::move(added));
      is_due = waiting_.size() >= most_waiting || Clock::now() - written_ >= pause_;
    }
    if (is_due) flush();
  }

  void flush() {
    std::vector<Added> now;
    std::shared_ptr<std::mutex> writing;
    {
      const std::lock_guard lock(adding_);
      forget_parent();
      writing = writing_;
    }
    const std::lock_guard lock(*writing);
    {
      const std::lock_guard lock_adding(adding_);
      now.swap(waiting_);
      written_ = Clock::now();
    }
    std::exception_ptr failed;
    for (Added& added : now) {
      const Tensor* const tensor = std::get_if<Tensor>(&added.value);
      if (tensor == nullptr) continue;
      try {
        added.value = tensor->item<double>();
      } catch (...) {
        failed = std::current_exception();
      }
    }
    std::erase_if(now, [](const Added& a) { return std::holds_alternative<Tensor>(a.value); });
    write(now);
    if (failed) std::rethrow_exception(failed);
  }

  [[nodiscard]] uint64_t lost() const {
    const std::lock_guard lock(adding_);
    return lost_;
  }
  [[nodiscard]] const fs::path& folder() const { return folder_; }

 private:
  using Clock = std::chrono::steady_clock;

  void open() {
    const double time = time_now();
    events_.emplace(new_event_file(folder_, time));
    lines_.emplace(folder_ / "metrics.jsonl");
    events_->append(events::version_record(time));
    if (lines_->has_open_line()) lines_->append("\n");
  }

  /// In the child of a fork: what waits is the parent's, and so may be who writes.
  void forget_parent() {
    if (process_ == ::getpid()) return;
    process_ = ::getpid();
    waiting_.clear();
    lost_ = 0;
    writing_ = std::make_shared<std::mutex>();
    is_open_ = false;
  }

  void write(const std::vector<Added>& all) {
    if (all.empty()) return;
    std::string records, lines;
    Json line;
    int64_t step = 0;
    const auto end_line = [&] {
      if (!line.empty()) lines += line.dump() + '\n';
      line.clear();
    };
    for (const Added& added : all) {
      if (const Record* record = std::get_if<Record>(&added.value)) {
        records += record->bytes;
        continue;
      }
      if (!line.empty() && (added.step != step || line.contains(added.name))) end_line();
      if (line.empty()) line = {{"step", step = added.step}, {"time", added.time}};
      if (const double* number = std::get_if<double>(&added.value)) {
        records += events::number_record(added.time, added.step, added.name, *number);
        line[added.name] = *number;
      } else if (const std::string* text = std::get_if<std::string>(&added.value)) {
        records += events::text_record(added.time, added.step, added.name, *text);
        line[added.name] = *text;
      }
    }
    end_line();
    try {
      if (!std::exchange(is_open_, true)) open();
      events_->append(records);
      lines_->append(lines);
    } catch (const Error& failed) {
      lose(all.size(), failed.report().what);
    }
  }

  void lose(std::size_t count, const std::string& reason) {
    uint64_t before = 0;
    {
      const std::lock_guard lock(adding_);
      before = std::exchange(lost_, lost_ + count);
    }
    if (before == 0)
      log(LogLevel::warning,
          fmt::format("MetricLog: {}: {} values are lost, and so may be later ones: {}",
                      folder_.string(), count, reason));
  }

  const fs::path folder_;
  const std::chrono::duration<double> pause_;
  mutable ForkSafeMutex adding_;  ///< of what stands between here and files
  pid_t process_ = ::getpid();
  std::vector<Added> waiting_;
  Clock::time_point written_ = Clock::now();
  uint64_t lost_ = 0;
  std::shared_ptr<std::mutex> writing_ = std::make_shared<std::mutex>();
  bool is_open_ = true;  ///< and what follows is the process's own
  std::optional<AppendedFile> events_, lines_;
};

namespace {

int64_t checked_step(const char* where, Integer step) {
  check_at_least(where, "step", step, 0);
  return step;
}

/// Counts of 30 equal parts. TensorBoard wants the last limit to be at least the greatest element.
std::string histogram_of(const std::vector<double>& values, double time, int64_t step,
                         std::string_view name) {
  constexpr std::size_t parts = 30;
  events::Histogram found;
  const auto [least, greatest] = std::ranges::minmax(values);
  found.least = least, found.greatest = greatest;
  std::vector<double> limits(least < greatest ? parts : 1, greatest), counts(limits.size());
  const double width = (greatest - least) / static_cast<double>(limits.size());
  for (std::size_t i = 0; i + 1 < limits.size(); ++i)
    limits[i] = least + width * static_cast<double>(i + 1);
  for (const double value : values) {
    const double part = width > 0 ? (value - least) / width : 0;
    counts[std::min(static_cast<std::size_t>(part), limits.size() - 1)] += 1;
    found.sum += value;
    found.sum_of_squares += value * value;
  }
  found.count = static_cast<double>(values.size());
  found.limits = limits, found.counts = counts;
  return events::histogram_record(time, step, name, found);
}

}  // namespace

MetricLog::MetricLog(const fs::path& folder, const MetricLogOptions& options)
    : files_(std::make_unique<Files>(folder, options)) {}
MetricLog::~MetricLog() = default;
MetricLog::MetricLog(MetricLog&&) noexcept = default;
MetricLog& MetricLog::operator=(MetricLog&&) noexcept = default;

void MetricLog::add(const std::string& name, const Tensor& value, Integer step,
                    std::source_location place) {
  if (value.size() != 1) {
    throw Error(ErrorKind::shape, {.where = "MetricLog::add",
                                   .what = fmt::format("the value of \"{}\"", as_utf8(name)),
                                   .expected = "one element",
                                   .got = describe(value),
                                   .fix = "Add its mean, or call add_histogram()."});
  }
  Added added = {checked_name("MetricLog::add", name), time_now(),
                 checked_step("MetricLog::add", step), stop_gradient(value)};
  if (is_held()) added.value = value.item<double>(place);  // which the compiled function is told
  files_->add(std::move(added));
}

void MetricLog::add_number(const std::string& name, double value, Integer step) {
  files_->add({checked_name("MetricLog::add", name), time_now(),
               checked_step("MetricLog::add", step), value});
}

void MetricLog::add_text(const std::string& name, const std::string& text, Integer step) {
  files_->add({checked_name("MetricLog::add_text", name), time_now(),
               checked_step("MetricLog::add_text", step), as_utf8(text)});
}

void MetricLog::add_histogram(const std::string& name, const Tensor& values, Integer step) {
  const std::string checked = checked_name("MetricLog::add_histogram", name);
  const int64_t number = checked_step("MetricLog::add_histogram", step);
  const NoGradients scope;
  std::vector<double> elements = cast(values, f64).to_vector<double>();
  std::erase_if(elements, [](double value) { return !std::isfinite(value); });
  if (elements.empty()) return;
  const double time = time_now();
  files_->add({checked, time, number, Record{histogram_of(elements, time, number, checked)}});
}

void MetricLog::flush() {
  files_->flush();
}
uint64_t MetricLog::lost() const {
  return files_->lost();
}
const fs::path& MetricLog::folder() const {
  return files_->folder();
}

}  // namespace nitinol::nn
