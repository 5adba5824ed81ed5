#include "bench/row.h"

#include <nlohmann/json.hpp>

namespace nitinol::bench {

namespace {

void put(nlohmann::json& json, const char* name, const std::optional<double>& value) {
  if (value) json[name] = *value;
}

std::optional<double> number(const nlohmann::json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

}  // namespace

nlohmann::json to_json(const Row& row) {
  nlohmann::json json = {{"peer", "nitinol"},        {"workload", row.workload},
                         {"mode", row.mode},         {"threads", row.threads},
                         {"median_s", row.median_s}, {"min_s", row.min_s},
                         {"repeats", row.repeats},   {"inner", row.inner},
                         {"notes", row.notes},       {"first_call_s", row.first_call_s}};
  put(json, "check", row.check);
  put(json, "rate", row.rate);
  put(json, "bound_s", row.bound_s);
  put(json, "probe_copy_s", row.probe_copy_s);
  put(json, "host_s", row.host_s);
  put(json, "device_s", row.device_s);
  if (row.bound_s && row.median_s > 0) json["of_bound"] = *row.bound_s / row.median_s;
  return json;
}

Row row_of(const nlohmann::json& json) {
  Row row;
  row.workload = json.at("workload").get<std::string>();
  row.mode = json.at("mode").get<std::string>();
  row.threads = json.at("threads").get<int>();
  row.median_s = number(json, "median_s").value_or(0);
  row.min_s = number(json, "min_s").value_or(0);
  row.repeats = static_cast<int>(number(json, "repeats").value_or(0));
  row.inner = static_cast<int64_t>(number(json, "inner").value_or(1));
  row.first_call_s = number(json, "first_call_s").value_or(0);
  row.check = number(json, "check");
  row.rate = number(json, "rate");
  row.bound_s = number(json, "bound_s");
  row.probe_copy_s = number(json, "probe_copy_s");
  row.host_s = number(json, "host_s");
  row.device_s = number(json, "device_s");
  row.notes = json.value("notes", "");
  return row;
}

}  // namespace nitinol::bench
