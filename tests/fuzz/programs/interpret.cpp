#include "tests/fuzz/programs/interpret.h"

#include "core/backend.h"
#include "eager/apply.h"
#include "tracer/recorder.h"

namespace nitinol::fuzz {
namespace {

/// The same tensor on another device; the same memory too, where that is the host's for both.
Tensor on_device(const Tensor& tensor, Device device) {
  const TensorData& data = tensor.internals();
  if (!data.is_number() &&
      !(backend(tensor.device()).is_host_memory() && backend(device).is_host_memory()))
    return tensor.to(device);
  Spec spec = data.spec;
  spec.device = device;
  if (data.is_number()) return make_number(spec, data.number);
  return make_tensor(spec, data.strides, data.offset, data.storage);
}

}  // namespace

std::vector<Tensor> interpreted(
    FunctionRef<std::vector<Tensor>(const std::vector<Tensor>&, const std::vector<Variable>&,
                                    const std::vector<Scalar>&)>
        function,
    const Arguments& arguments) {
  const Device device = {.kind = Device::Kind::reference, .index = 0};
  tracer::Trace trace;
  {
    tracer::Recorder recorder;
    const InterpreterScope scope(recorder);
    const std::vector<Tensor> results =
        function(arguments.tensors, arguments.variables, arguments.scalars);
    std::vector<const Tensor*> pointers;
    for (const Tensor& result : results) pointers.push_back(&result);
    trace = recorder.finish(pointers);
  }
  std::vector<Tensor> values;
  std::size_t input = 0;
  std::vector<Tensor> parts;  // of the latest op of several results
  for (const Node& node : trace.graph.nodes) {
    std::vector<const Tensor*> operands;
    for (const Value value : node.inputs) operands.push_back(&values[value]);
    switch (node.kind) {
      case Node::Kind::op:
        if (has_parts(node)) parts = apply_all(*node.op, operands, node.attrs);
        values.push_back(has_parts(node) ? Tensor() : apply(*node.op, operands, node.attrs));
        break;
      case Node::Kind::part:
        values.push_back(parts.at(static_cast<std::size_t>(std::get<int64_t>(node.attrs[0]))));
        break;
      case Node::Kind::constant:
        values.push_back(on_device(node.constant, device));
        break;
      case Node::Kind::input:  // arguments were not declared: only Variables are inputs
        values.push_back(on_device(trace.inputs[input++].captured.get(), device));
    }
  }
  std::vector<Tensor> results;
  for (std::size_t i = 0; i < trace.result_count; ++i) {
    results.push_back(on_device(values[trace.graph.outputs[i]], default_device()));
  }
  return results;
}

}  // namespace nitinol::fuzz
