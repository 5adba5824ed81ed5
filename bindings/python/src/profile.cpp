// Profiles and memory: what nitinol/_profile.py and _memory.py wrap.
#include "bindings/python/src/bind.h"
#include "bindings/python/src/errors.h"
#include "bindings/python/src/lock.h"

#include <algorithm>
#include <utility>

namespace nitinol::python {
namespace {

/// Where a thread of Python's is, for profiles, which ask any thread.
std::string place_of_python(void* context) {
  return PyGILState_GetThisThreadState() != nullptr ? python_place(context) : std::string();
}

ProfileBy by_named(const std::string& name) {
  if (name == "op") return ProfileBy::op;
  if (name == "shape") return ProfileBy::shape;
  if (name == "line") return ProfileBy::line;
  throw Error(ErrorKind::value, {.where = "Profile.table",
                                 .what = "the argument `by`",
                                 .expected = "'op', 'shape' or 'line'",
                                 .got = "'" + name + "'"});
}

nb::list events_of(const ProfileReport& report) {
  nb::list labels, events;
  for (const ProfileLabel& label : report.labels) {
    const std::string kind(name_of(label.kind));
    nb::list places;
    for (const std::string& place : label.places) places.append(place);
    labels.append(nb::make_tuple(kind, label.name, label.detail, nb::tuple(places), label.bytes,
                                 label.operations, label.bound_s));
  }
  for (const ProfileEvent& event : report.events) {
    nb::list fields;
    for (const nb::handle field : nb::cast<nb::tuple>(labels[event.label])) fields.append(field);
    fields.append(nb::str(event.tier.data(), event.tier.size()));
    fields.append(event.thread);
    fields.append(event.begin_s);
    fields.append(event.length_s);
    fields.append(event.self_s);
    fields.append(event.allocations);
    fields.append(event.parent);
    fields.append(event.forward);
    events.append(nb::tuple(fields));
  }
  return events;
}

nb::tuple texts_of(const std::vector<std::string>& texts) {
  nb::list all;
  for (const std::string& text : texts) all.append(text);
  return nb::tuple(all);
}

void bind_memory(nb::module_& m) {
  nb::class_<MemoryNotes>(m, "_MemoryNotes").def(nb::init<>());
  nb::class_<MemorySnapshot>(m, "_MemorySnapshot")
      .def("blocks",
           [](const MemorySnapshot& self) {
             nb::list all;
             for (const MemoryBlock& block : self.blocks) {
               all.append(nb::make_tuple(block.made_by, texts_of(block.places), block.bytes,
                                         block.device, block.age_s, block.is_held));
             }
             return all;
           })
      .def("lines",
           [](const MemorySnapshot& self) {
             nb::list all;
             for (const MemoryLine& line : self.lines) {
               all.append(nb::make_tuple(line.made_by, texts_of(line.places), line.bytes,
                                         line.blocks, line.held, line.at_peak, line.made));
             }
             return all;
           })
      .def("points",
           [](const MemorySnapshot& self) {
             nb::list all;
             for (const MemoryPoint& point : self.points) {
               nb::dict shares;
               for (const MemoryPoint::Share& share : point.shares)
                 shares[nb::int_(share.line)] = share.bytes;
               all.append(nb::make_tuple(point.time_s, point.bytes, shares));
             }
             return all;
           })
      .def_ro("bytes", &MemorySnapshot::bytes)
      .def_ro("others", &MemorySnapshot::others)
      .def_ro("peak", &MemorySnapshot::peak)
      .def(
          "table",
          [](const MemorySnapshot& self, nb::handle rows) {
            const auto most = convert<int64_t>({"MemorySnapshot.table", "rows", rows});
            return to_string(self, static_cast<std::size_t>(std::max<int64_t>(most, 0)));
          },
          nb::arg("rows").none())
      .def(
          "save",
          [](const MemorySnapshot& self, nb::handle path) {
            const auto file = convert<std::filesystem::path>({"MemorySnapshot.save", "path", path});
            unlocked([&] { self.save(file.string()); });
          },
          nb::arg("path").none())
      .def("to_json", &MemorySnapshot::to_json)
      .def("to_html", &MemorySnapshot::to_html);
  m.def("_memory_snapshot", [] {
    try {
      return unlocked([] { return memory_snapshot(); });
    } catch (const Error& error) {  // nobody notes
      ErrorReport report = error.report();
      report.fix = "Call it within `with nt.memory_notes():`, or set NITINOL_MEMORY=1.";
      throw Error(error.kind(), std::move(report));
    }
  });
}

}  // namespace

void bind_profile(nb::module_& m) {
  set_default_place_provider(place_of_python);
  bind_memory(m);
  nb::class_<Profile>(m, "_Profile")
      .def(
          "__init__",
          [](Profile* self, std::size_t most_events, bool lines) {
            new (self) Profile(ProfileOptions{.most_events = most_events, .lines = lines});
          },
          nb::arg("most_events"), nb::arg("lines"))
      .def("stop", &Profile::stop)
      .def("report", [](const Profile& self) { return unlocked([&] { return self.report(); }); })
      .def(
          "save",
          [](const Profile& self, nb::handle path) {
            const auto file = convert<std::filesystem::path>({"Profile.save", "path", path});
            unlocked([&] { self.save(file.string()); });
          },
          nb::arg("path"));
  nb::class_<ProfileReport>(m, "_ProfileReport")
      .def(
          "table",
          [](const ProfileReport& self, const std::string& by, std::size_t rows) {
            const ProfileBy wanted = by_named(by);
            return unlocked([&] { return self.table(wanted, rows); });
          },
          nb::arg("by"), nb::arg("rows"))
      .def("to_json",
           [](const ProfileReport& self) { return unlocked([&] { return self.to_json(); }); })
      .def("events", &events_of)
      .def_ro("dropped", &ProfileReport::dropped);
}

}  // namespace nitinol::python
