#include "engine/schedule/executor.hpp"

namespace minfer {

Status Executor::copy(const CompiledGraph& compiled, const std::vector<Device*>& devices, std::span<Scratch> scratch,
                      const StagedCopy& copy, uint32_t to_device) {
  const uint64_t bytes = compiled.graph.values[copy.value].bytes();
  const uint64_t from_offset = compiled.memory.offset_bytes[copy.from_device][copy.value];
  const uint64_t to_offset = compiled.memory.offset_bytes[to_device][copy.value];
  MINFER_TRY(devices[copy.from_device]->sync());
  const Buffer& from = *scratch[copy.from_device].buffer();
  const void* source = from.host_ptr();
  if (source) {
    source = static_cast<const std::byte*>(source) + from_offset;
  } else {
    if (bounce_.size() < bytes) bounce_.resize(bytes);
    MINFER_TRY(from.read(from_offset, bounce_.data(), bytes));
    source = bounce_.data();
  }
  MINFER_TRY(scratch[to_device].buffer()->write(to_offset, source, bytes));
  stats_.staged_bytes += bytes;
  return {};
}

Status Executor::run(const CompiledGraph& compiled, const std::vector<Device*>& devices, std::span<Scratch> scratch,
                     const StepInputs& inputs, const StopCheck* should_stop, const NodeObserver* observer) {
  for (size_t s = 0; s < compiled.splits.size(); ++s) {
    const Split& split = compiled.splits[s];
    for (const StagedCopy& staged : split.copies) MINFER_TRY(copy(compiled, devices, scratch, staged, split.device));
    MINFER_TRY(compiled.plans[s]->run(inputs, should_stop));
    ++stats_.splits;
    if (!observer || !*observer) continue;
    for (NodeId n : split.nodes) {
      if (compiled.graph.nodes[n].outputs.empty()) continue;
      MINFER_ASSIGN(const auto values, read_output(compiled, devices, scratch, compiled.graph.nodes[n].outputs[0]));
      (*observer)(compiled.graph, n, values);
    }
  }
  return {};
}

Result<std::span<const float>> Executor::read_output(const CompiledGraph& compiled, const std::vector<Device*>& devices,
                                                     std::span<Scratch> scratch, ValueId output) {
  const uint32_t device = compiled.device_of(output);
  const Value& value = compiled.graph.values[output];
  const uint64_t offset = compiled.memory.offset_bytes[device][output];
  MINFER_TRY(devices[device]->sync());
  const Buffer& buffer = *scratch[device].buffer();
  const std::byte* data = static_cast<const std::byte*>(buffer.host_ptr());
  if (data) {
    data += offset;
  } else {
    if (bounce_.size() < value.bytes()) bounce_.resize(value.bytes());
    MINFER_TRY(buffer.read(offset, bounce_.data(), value.bytes()));
    data = bounce_.data();
  }
  return std::span<const float>(reinterpret_cast<const float*>(data), value.shape.elements());
}

}  // namespace minfer
