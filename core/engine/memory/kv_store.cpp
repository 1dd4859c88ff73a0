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

}  // namespace minfer
