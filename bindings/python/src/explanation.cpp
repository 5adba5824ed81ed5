// Explanations: what nitinol/_compile.py wraps.
#include "bindings/python/src/bind.h"
#include "bindings/python/src/errors.h"
#include "bindings/python/src/lock.h"

#include <algorithm>

namespace nitinol::python {
namespace {

/// The signature of that number; -1: the first that has a plan.
const SignatureReport& signature_at(const Explanation& explanation, int64_t number) {
  const std::vector<SignatureReport>& all = explanation.signatures;
  const auto found = std::ranges::find(all, Tier::traced, &SignatureReport::tier);
  if (number < 0 && found != all.end()) return *found;
  const bool is_there = number >= 0 && number < static_cast<int64_t>(all.size());
  if (is_there && all[static_cast<std::size_t>(number)].tier == Tier::traced)
    return all[static_cast<std::size_t>(number)];
  throw Error(ErrorKind::value,
              {.where = "Explanation.to_dot",
               .what = number < 0 ? "the signatures" : "signature " + std::to_string(number),
               .expected = "one that is compiled",
               .got = is_there ? std::string(name_of(all[static_cast<std::size_t>(number)].tier))
                               : "a function of " + std::to_string(all.size()) + " signatures",
               .fix = "print(explanation) lists them."});
}

std::string dot_of(const Explanation& explanation, int64_t number, bool backward) {
  const SignatureReport& signature = signature_at(explanation, number);
  if (!backward) return signature.plan.to_dot();
  if (signature.backward) return signature.backward->to_dot();
  throw Error(ErrorKind::value, {.where = "Explanation.to_dot",
                                 .what = "the backward plan of (" + signature.signature + ")",
                                 .expected = "results that backward() has come through",
                                 .got = "none",
                                 .fix = {}});
}

}  // namespace

void bind_explanation(nb::module_& m) {
  nb::class_<Explanation>(m, "_Explanation")
      .def("text",
           [](const Explanation& self) { return unlocked([&] { return to_string(self); }); })
      .def(
          "to_json",
          [](const Explanation& self, bool bounds) {
            return unlocked(
                [&] { return self.to_json(bounds ? Bounds::measured : Bounds::left_out); });
          },
          nb::arg("bounds"))
      .def(
          "to_html",
          [](const Explanation& self, bool code) {
            return unlocked([&] { return self.to_html({.code = code}); });
          },
          nb::arg("code"))
      .def(
          "save_html",
          [](const Explanation& self, nb::handle path, bool code) {
            const auto file =
                convert<std::filesystem::path>({"Explanation.save_html", "path", path});
            unlocked([&] { self.save_html(file.string(), {.code = code}); });
          },
          nb::arg("path"), nb::arg("code"))
      .def(
          "to_dot",
          [](const Explanation& self, int64_t signature, bool backward) {
            return unlocked([&] { return dot_of(self, signature, backward); });
          },
          nb::arg("signature"), nb::arg("backward"));
}

}  // namespace nitinol::python
