// A profile as a table and as a trace.
#include "jit/figures.h"
#include "jit/profile.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace nitinol {
namespace {

using jit::bytes;
using jit::lines_of;
using jit::seconds;

/// What stands in one row.
struct Row {
  std::string what;
  std::set<std::string> places, more;  ///< more: names of what a line does
  uint64_t count = 0;
  double total_s = 0, self_s = 0;
  /// Of the events whose bytes are known.
  double moving_s = 0, bytes = 0, operations = 0, bound_s = 0;
  double device_s = 0;
};

/// The lines of an event: of a way back those of the way forward, else its own, else those of what
/// it happens in.
const std::vector<std::string>& places_of(const ProfileReport& report, std::size_t number) {
  static const std::vector<std::string> none;
  const auto of = [&](std::ptrdiff_t i) -> const ProfileEvent& {
    return report.events[static_cast<std::size_t>(i)];
  };
  const auto self = static_cast<std::ptrdiff_t>(number);
  for (std::ptrdiff_t i = self; i >= 0; i = of(i).parent) {
    if (of(i).forward < 0) continue;
    const std::vector<std::string>& places = report.labels[of(of(i).forward).label].places;
    if (!places.empty()) return places;
  }
  for (std::ptrdiff_t i = self; i >= 0; i = of(i).parent) {
    const std::vector<std::string>& places = report.labels[of(i).label].places;
    if (!places.empty()) return places;
  }
  return none;
}

/// Whether the detail tells kinds of the same name apart in a short list.
bool is_told_apart(EventKind kind) {
  return kind == EventKind::call || kind == EventKind::compile;
}

class Table {
 public:
  Table(const ProfileReport& report, ProfileBy by) : report_(report), by_(by) {
    for (std::size_t i = 0; i < report.events.size(); ++i) add(i);
  }

  [[nodiscard]] std::string text(std::size_t most) {
    std::vector<const Row*> rows;
    for (const auto& [key, row] : rows_) rows.push_back(&row);
    std::ranges::sort(rows, std::greater(), &Row::self_s);
    std::string text = head();
    text +=
        fmt::format("{:>10} {:>5} {:>10} {:>9} {:>8}{} {:>7} {:>8} {:>6}  {}\n", "self", "%",
                    "total", "count", "each", has_device_ ? fmt::format(" {:>10}", "device") : "",
                    "GB/s", "GFLOP/s", "bound", "what");
    for (std::size_t i = 0; i < std::min(most, rows.size()); ++i) text += line(*rows[i]);
    if (rows.size() > most) {
      double rest = 0;
      for (std::size_t i = most; i < rows.size(); ++i) rest += rows[i]->self_s;
      text += fmt::format("{:>10} {:>5}  of {} more rows\n", seconds(rest), percent(rest),
                          rows.size() - most);
    }
    const double outside = report_.length_s - inside_s_;
    if (outside > 0) {
      text +=
          fmt::format("{:>10} {:>5}  outside of the library\n", seconds(outside), percent(outside));
    }
    return text;
  }

 private:
  void add(std::size_t i) {
    const ProfileEvent& event = report_.events[i];
    const ProfileLabel& label = report_.labels[event.label];
    threads_ = std::max(threads_, event.thread + 1);
    if (event.parent < 0 && event.thread == 0) inside_s_ += event.length_s;
    const std::vector<std::string>& places = places_of(report_, i);
    std::string detail;
    if (by_ == ProfileBy::shape || is_told_apart(label.kind)) detail = label.detail;
    const std::string name = fmt::format("{} {}", name_of(label.kind), label.name);
    const std::string what =
        by_ == ProfileBy::line
            ? places.empty() ? std::string(without_line(label.kind)) : lines_of(places)
        : detail.empty() ? name
                         : fmt::format("{} ({})", name, detail);
    Row& row = rows_[what];
    row.what = what;
    row.places.insert(places.begin(), places.end());
    row.more.insert(label.name);
    ++row.count;
    row_of_.push_back(&row);
    if (!is_within(i)) {
      row.total_s += event.length_s;
      row.device_s += event.device_s;
    }
    has_device_ |= event.device_s > 0;
    row.self_s += event.self_s;
    if (label.bytes <= 0) return;
    row.moving_s += event.device_s > 0 ? event.device_s : event.self_s;
    row.bytes += label.bytes;
    row.operations += label.operations;
    row.bound_s += label.bound_s;
  }

  /// Whether an event of the same row contains this one, and its time with it.
  [[nodiscard]] bool is_within(std::size_t i) const {
    for (std::ptrdiff_t outer = report_.events[i].parent; outer >= 0;
         outer = report_.events[static_cast<std::size_t>(outer)].parent) {
      if (row_of_[static_cast<std::size_t>(outer)] == row_of_[i]) return true;
    }
    return false;
  }

  /// In a list of lines: what has none.
  static std::string_view without_line(EventKind kind) {
    switch (kind) {
      case EventKind::call:
      case EventKind::record:
        return "(calls of compiled functions)";
      case EventKind::compile:
        return "(compiling)";
      default:
        return "(no line known)";
    }
  }

  [[nodiscard]] std::string percent(double part_s) const {
    return report_.length_s > 0 ? fmt::format("{:.1f}", 100 * part_s / report_.length_s) : "";
  }

  [[nodiscard]] std::string head() const {
    std::size_t peak = 0;
    for (const ProfileMemory& memory : report_.memory) peak = std::max(peak, memory.bytes);
    std::string text = fmt::format("profile of {}: {} events on {} thread{}, {} in use at most\n",
                                   seconds(report_.length_s), report_.events.size(),
                                   std::max(1, threads_), threads_ > 1 ? "s" : "", bytes(peak));
    if (report_.dropped > 0) {
      text += fmt::format("{} later events were dropped: raise ProfileOptions::most_events\n",
                          report_.dropped);
    }
    return text;
  }

  [[nodiscard]] std::string line(const Row& row) const {
    const double each = row.self_s / static_cast<double>(row.count);
    const bool is_known = row.moving_s > 0 && row.bytes > 0;
    const auto rate = [&](double amount) {
      return is_known && amount > 0 ? fmt::format("{:.3g}", amount / row.moving_s * 1e-9)
                                    : std::string();
    };
    const std::string bound = is_known && row.bound_s > 0
                                  ? fmt::format("{:.0f} %", 100 * row.bound_s / row.moving_s)
                                  : "";
    std::string what = row.what;
    if (by_ == ProfileBy::line) {
      const std::vector<std::string> names(row.more.begin(), row.more.end());
      constexpr std::size_t most = 4;
      std::string list;
      for (std::size_t i = 0; i < std::min(most, names.size()); ++i)
        list += fmt::format("{}{}", list.empty() ? "" : ", ", names[i]);
      if (names.size() > most) list += ", ...";
      what += "  " + list;
    } else if (!row.places.empty()) {
      what += "  " + lines_of({row.places.begin(), row.places.end()});
    }
    const std::string device =
        has_device_
            ? fmt::format(" {:>10}", row.device_s > 0 ? seconds(row.device_s) : std::string())
            : std::string();
    return fmt::format("{:>10} {:>5} {:>10} {:>9} {:>8}{} {:>7} {:>8} {:>6}  {}\n",
                       seconds(row.self_s), percent(row.self_s), seconds(row.total_s), row.count,
                       seconds(each), device, rate(row.bytes), rate(row.operations), bound, what);
  }

  const ProfileReport& report_;
  ProfileBy by_;
  std::map<std::string, Row> rows_;
  std::vector<const Row*> row_of_;  ///< of each event
  bool has_device_ = false;
  double inside_s_ = 0;
  int threads_ = 0;
};

// ---- the trace

/// A string of JSON. What is no UTF-8 is replaced.
std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Perfetto takes 0 for the process's own number, which is 1.
int track_of(int thread) {
  return thread + 1;
}

/// Microseconds of a begin and of a length. Readers make whole nanoseconds of them, by rounding or
/// by cutting off: a little more for the begin, and less for the length, and either way events that
/// touch do not overlap, of which Perfetto would drop one.
double begin_us(double begin_s) {
  return std::round(begin_s * 1e9) * 1e-3 + 0.0002;
}
double length_us(double begin_s, double length_s) {
  const double whole = std::round((begin_s + length_s) * 1e9) - std::round(begin_s * 1e9);
  return std::max(0.0, whole * 1e-3 - 0.0002);
}

class Trace {
 public:
  explicit Trace(const ProfileReport& report) : report_(report) {
    for (const ProfileLabel& label : report.labels) arguments_.push_back(arguments_of(label));
  }

  std::string text() && {
    out_ = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
    add(R"({"ph":"M","pid":1,"name":"process_name","args":{"name":"nitinol"}})");
    std::set<int> threads;
    for (std::size_t i = 0; i < report_.events.size(); ++i) {
      const ProfileEvent& event = report_.events[i];
      if (threads.insert(event.thread).second) add_thread(event.thread);
      add_event(event);
      if (event.forward >= 0) add_flow(event, i);
      if (event.device_s > 0) add_on_device(event);
    }
    for (const ProfileMemory& memory : report_.memory) {
      add(fmt::format(R"({{"ph":"C","pid":1,"ts":{:.4f},"name":{},"args":{{"bytes":{}}}}})",
                      begin_us(memory.time_s), json_text("memory of " + describe(memory.device)),
                      memory.bytes));
    }
    out_ += fmt::format("\n],\"otherData\":{{\"length_s\":{},\"dropped_events\":{}}}}}\n",
                        report_.length_s, report_.dropped);
    return std::move(out_);
  }

 private:
  static std::string arguments_of(const ProfileLabel& label) {
    std::string text;
    if (!label.detail.empty()) text += fmt::format(R"("detail":{},)", json_text(label.detail));
    if (!label.places.empty()) {
      std::string list;
      for (const std::string& place : label.places)
        list += fmt::format("{}{}", list.empty() ? "" : ",", json_text(place));
      text += fmt::format(R"("lines":[{}],)", list);
    }
    if (label.bytes > 0) text += fmt::format(R"("bytes":{:.0f},)", label.bytes);
    if (label.operations > 0) text += fmt::format(R"("operations":{:.0f},)", label.operations);
    return text;
  }

  void add(std::string_view event) {
    if (!is_first_) out_ += ",\n";
    is_first_ = false;
    out_ += event;
  }

  void add_thread(int thread) {
    add(fmt::format(
        R"({{"ph":"M","pid":1,"tid":{0},"name":"thread_name","args":{{"name":"{1}"}}}})",
        track_of(thread),
        thread == 0 ? "thread of the profile" : fmt::format("thread {}", thread)));
  }

  static std::string of_bound(const ProfileLabel& label, double took_s) {
    if (label.bound_s <= 0 || took_s <= 0) return "";
    return fmt::format(R"("of_bound":{:.3f},)", label.bound_s / took_s);
  }

  void add_event(const ProfileEvent& event) {
    const ProfileLabel& label = report_.labels[event.label];
    std::string arguments = arguments_[event.label];
    if (event.device_s == 0) arguments += of_bound(label, event.self_s);
    if (event.allocations > 0) arguments += fmt::format(R"("allocations":{},)", event.allocations);
    arguments += fmt::format(R"("tier":"{}")", event.tier);
    add(fmt::format(
        R"({{"ph":"X","pid":1,"tid":{},"ts":{:.4f},"dur":{:.4f},"name":{},"cat":"{}","args":{{{}}}}})",
        track_of(event.thread), begin_us(event.begin_s), length_us(event.begin_s, event.length_s),
        json_text(label.name), name_of(label.kind), arguments));
  }

  /// On a track of the device's own.
  void add_on_device(const ProfileEvent& event) {
    constexpr int first_track = 1'000'000;  // beyond threads
    const std::string device = describe(event.device);
    const auto [track, is_new] =
        tracks_.try_emplace(device, first_track + static_cast<int>(tracks_.size()));
    if (is_new) {
      add(fmt::format(R"({{"ph":"M","pid":1,"tid":{},"name":"thread_name","args":{{"name":{}}}}})",
                      track->second, json_text(device)));
    }
    const ProfileLabel& label = report_.labels[event.label];
    add(fmt::format(
        R"({{"ph":"X","pid":1,"tid":{},"ts":{:.4f},"dur":{:.4f},"name":{},"cat":"{}","args":{{{}{}"tier":"{}"}}}})",
        track->second, begin_us(event.device_begin_s),
        length_us(event.device_begin_s, event.device_s), json_text(label.name), name_of(label.kind),
        arguments_[event.label], of_bound(label, event.device_s), event.tier));
  }

  /// An arrow from the way forward to `event`.
  void add_flow(const ProfileEvent& event, std::size_t number) {
    const ProfileEvent& from = report_.events[static_cast<std::size_t>(event.forward)];
    constexpr std::string_view format =
        R"({{"ph":"{}","pid":1,"tid":{},"ts":{:.4f},"id":{},"name":"backward","cat":"backward"{}}})";
    add(fmt::format(format, "s", track_of(from.thread), begin_us(from.begin_s), number, ""));
    add(fmt::format(format, "f", track_of(event.thread), begin_us(event.begin_s), number,
                    R"(,"bp":"e")"));
  }

  const ProfileReport& report_;
  std::vector<std::string> arguments_;  ///< of labels
  std::string out_;
  bool is_first_ = true;
  std::map<std::string, int> tracks_;  ///< of devices
};

}  // namespace

std::string ProfileReport::table(ProfileBy by, std::size_t rows) const {
  return Table(*this, by).text(rows);
}

std::string ProfileReport::to_json() const {
  return Trace(*this).text();
}

}  // namespace nitinol
