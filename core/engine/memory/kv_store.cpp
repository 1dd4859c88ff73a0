#include "engine/memory/kv_store.hpp"

namespace minfer {

Status KvStore::ensure() {
  if (!layers_.empty()) return {};
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<KvLayer> layers;
  uint64_t total = 0;
  for (uint32_t layer = 0; layer < layer_devices_.size(); ++layer) {
    Device& device = *layer_devices_[layer];
    MINFER_ASSIGN(const KvRegionBytes bytes, device.kv_region_bytes(layout_));
    for (const uint64_t size : {bytes.k, bytes.v}) {
      auto buffer = device.alloc(size);
      if (!buffer.ok())
        return buffer.error().in(text("KV cache, layer {} of {}, {} positions on {} (a smaller context.n_ctx needs less)", layer,
                                      layer_devices_.size(), uint64_t{layout_.n_blocks} * kKvBlockPositions, device.info().name));
      buffers.push_back(std::move(*buffer));
      total += size;
    }
    layers.push_back({layer, layout_, buffers[buffers.size() - 2].get(), buffers.back().get()});
  }
  buffers_ = std::move(buffers);
  layers_ = std::move(layers);
  size_bytes_ = total;
  return {};
}

Status KvStore::copy_blocks(std::span<const BlockCopy> copies) {
  if (copies.empty()) return {};
  std::vector<KvRowCopy> rows;
  for (const BlockCopy& copy : copies) rows.push_back({copy.src_block, 0, copy.dst_block, 0, copy.n_rows});
  for (const KvLayer& layer : layers_) MINFER_TRY(layer_devices_[layer.layer]->kv_copy_rows(layer, rows));
  return {};
}

Status KvStore::check_removal(const KvRemoval& removal, std::span<const LayerRotation> layers) const {
  std::vector<KvRows> rows;
  for (const KvRowCopy& move : removal.moves) rows.push_back({move.src_block, move.src_row, move.n_rows});
  for (const KvLayer& layer : layers_) {
    KvRotation back = layers[layer.layer].rotation;
    back.delta = -static_cast<int32_t>(removal.count);
    const Status status = layer_devices_[layer.layer]->kv_rotate(layer, back, layers[layer.layer].weights, rows, true);
    if (!status.ok()) return status.error().in(text("layer {}", layer.layer));
  }
  return {};
}

Status KvStore::move_rows(const KvRemoval& removal, std::span<const LayerRotation> layers) {
  std::vector<KvRowCopy> copies = removal.kept;
  std::vector<KvRows> rows;
  for (const KvRowCopy& move : removal.moves) {
    copies.push_back(move);
    rows.push_back({move.dst_block, move.dst_row, move.n_rows});
  }
  for (const KvLayer& layer : layers_) {
    KvRotation back = layers[layer.layer].rotation;
    back.delta = -static_cast<int32_t>(removal.count);
    Device& device = *layer_devices_[layer.layer];
    MINFER_TRY(device.kv_copy_rows(layer, copies));
    MINFER_TRY(device.kv_rotate(layer, back, layers[layer.layer].weights, rows, false));
  }
  return {};
}

Status KvStore::export_rows(uint32_t layer, std::span<const KvRows> rows, std::span<std::byte> out) const {
  return layer_devices_[layer]->kv_export(layers_[layer], rows, out.data(), out.data() + out.size() / 2);
}

Status KvStore::import_rows(uint32_t layer, std::span<const KvRows> rows, std::span<const std::byte> in) {
  return layer_devices_[layer]->kv_import(layers_[layer], rows, in.data(), in.data() + in.size() / 2);
}

}  // namespace minfer
