// Processes that compute together: Group, and what nitinol/dist.py calls. The collectives are
// generated from eager/ops/collectives.h.
#include "bindings/python/src/bind.h"
#include "bindings/python/src/errors.h"
#include "bindings/python/word_lists.h"
#include "core/interrupt.h"
#include "dist/group_state.h"

#include <fmt/format.h>

#include <functional>
#include <span>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

namespace nitinol::python {
namespace {

/// f(), for which other processes may have to be waited: without Python's lock, and they are told
/// the line of Python.
template <class F>
auto together(F&& f) {
  const PlaceScope place(python_place);
  return unlocked(std::forward<F>(f));
}

nb::list list_of(const std::vector<Variable>& variables) {
  nb::list all;
  for (const Variable& variable : variables) all.append(to_python(variable));
  return all;
}

nb::tuple members_of(const dist::Group& group) {
  nb::list all;
  for (const int rank : group.members()) all.append(rank);
  return nb::tuple(all);
}

std::string text_of(const dist::Group& group) {
  if (!group.is_member()) return "Group(is_member=False)";
  return fmt::format("Group(rank={}, size={})", group.rank(), group.size());
}

/// Equal groups have the same members, but not all that have are equal.
int64_t hash_of(const dist::Group& group) {
  if (!group.is_member()) return 0;
  int64_t hash = group.size();
  for (const int rank : group.members()) hash = hash * 31 + rank;
  return hash;
}

dist::Group group_or_world(const char* where, nb::handle group) {
  return group.is_none() ? dist::world() : convert<dist::Group>({where, "group", group});
}

/// What nitinol/_sharded.py is made of.
using nn::sharded::Lines;

void bind_sharded(nb::module_& m) {
  nb::class_<Lines>(m, "_Lines")
      .def(
          "__init__",
          [](Lines* self, nb::handle parameters, nb::handle group) {
            new (self) Lines(convert<std::vector<Variable>>({"Sharded", "parameters", parameters}),
                             group_or_world("Sharded", group));
          },
          nb::arg("parameters"), nb::arg("group").none())
      .def("parameters", [](const Lines& self) { return list_of(self.parameters()); })
      .def("parts", [](const Lines& self) { return list_of(self.parts()); })
      .def("reduce_gradients",
           [](const Lines& self) { together([&] { self.reduce_gradients({}); }); })
      .def("clear_gradients", &Lines::clear_gradients)
      .def("group", [](const Lines& self) { return self.group(); })
      .def("gather", [](const Lines& self) { together([&] { self.gather({}); }); })
      .def("gather_state",
           [](const Lines& self, const nn::Optimizer& part, const nn::Optimizer& whole) {
             together([&] { self.gather_state(part, whole, {}); });
           })
      .def("scatter_state",
           [](const Lines& self, const nn::Optimizer& part, const nn::Optimizer& whole) {
             together([&] { self.scatter_state(whole, part); });
           })
      .def("take_parameters", [](const Lines& self) { unlocked([&] { self.take_parameters(); }); });
}

void bind_group(nb::module_& m) {
  nb::class_<dist::Group> group(
      m, "Group", nb::is_final(),
      "Processes that compute together: world(), or some of it, as split() gives.");
  types().group = group;
  group
      .def("__init__",
           [](dist::Group*, nb::args, nb::kwargs) {
             throw_python(PyExc_TypeError, "Group: world() and its split() give groups");
           })
      .def_prop_ro(
          "is_member", [](const dist::Group& self) { return self.is_member(); },
          "Whether this process is one of the members. All else raises ArgumentError if not.")
      .def_prop_ro(
          "rank", [](const dist::Group& self) { return self.rank(); },
          "This process's number among the members, from 0 on.")
      .def_prop_ro(
          "size", [](const dist::Group& self) { return self.size(); },
          "How many members there are.")
      .def_prop_ro("members", members_of, nb::sig("def members(self) -> tuple[int, ...]"),
                   "The members' ranks in the world, in their order.")
      .def(
          "split",
          [](const dist::Group& self, nb::handle colour, nb::handle key) {
            const auto own = convert<Integer>({"split", "colour", colour});
            const auto place = convert<Integer>({"split", "key", key});
            const dist::Group from = self;
            return together([&] { return from.split(own, place); });
          },
          nb::arg("colour"), nb::arg("key") = 0,
          nb::sig("def split(self, colour: int, key: int = 0) -> Group"),
          "The members that give the same colour as this one, in the order of key, then of their\n"
          "ranks here. All members call it. One that gives a negative colour gets a group that it\n"
          "is no member of.")
      .def("__repr__", text_of)
      .def("__hash__", hash_of)
      .def(
          "__eq__",
          [](const dist::Group& self, nb::handle other) {
            return other.type().is(types().group) && self == nb::cast<dist::Group>(other);
          },
          nb::arg("other").none(), nb::sig("def __eq__(self, other: object, /) -> bool"));
}

/// Raises what the handler of a signal raises, in the one thread whose they are.
void check_signals() {
  if (gettid() != getpid()) return;
  const Locked lock;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

}  // namespace

void bind_dist(nb::module_& m) {
  set_interrupt_check(check_signals);
  bind_group(m);
  bind_sharded(m);
  m.def("_dist_init", [](nb::handle timeout) {
    const dist::Options options = {.timeout = convert<double>({"init", "timeout", timeout})};
    together([&] { dist::init(options); });
  });
  m.def("_dist_has_joined", dist::has_joined);
  m.def("_dist_world", [] { return together([] { return dist::Group(dist::world()); }); });
  m.def("_dist_local_rank", [] { return together(dist::local_rank); });
  m.def("_dist_local_size", [] { return together(dist::local_size); });
  m.def(
      "_dist_broadcast",
      [](nb::dict named, nb::handle root, nb::handle group) {
        std::vector<nn::NamedVariable> all;
        for (const auto [name, variable] : named)
          all.push_back({convert<std::string>({"broadcast", "a name", name}),
                         convert<Variable>({"broadcast", "a Variable", variable})});
        const auto from = convert<Integer>({"broadcast", "root", root});
        const dist::Group members = group_or_world("broadcast", group);
        together([&] { nn::module::broadcast(all, from, members, {}); });
      },
      nb::arg("named"), nb::arg("root"), nb::arg("group").none());
  m.def(
      "_dist_all_reduce",
      [](nb::handle list, nb::handle how, nb::handle group) {
        const auto all = convert<std::vector<Tensor>>({"all_reduce", "x", list});
        const auto joined = convert<dist::Reduce>({"all_reduce", "how", how});
        const dist::Group members = group_or_world("all_reduce", group);
        nb::list results;
        for (const Tensor& one : together(
                 [&] { return dist::all_reduce(std::span<const Tensor>(all), joined, members); }))
          results.append(to_python(one));
        return results;
      },
      nb::arg("list"), nb::arg("how") = "sum", nb::arg("group") = nb::none());
  m.def("_dist_description", [] { return together(dist::description); });
}

}  // namespace nitinol::python
