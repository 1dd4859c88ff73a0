// The KV memory of a session: one K and one V region per layer on that layer's device, made at first touch and kept to the
// end of the session, whatever graphs come and go.
#pragma once

#include <memory>
#include <vector>

#include "engine/device.hpp"
#include "engine/memory/kv_blocks.hpp"

namespace minfer {

class KvStore {
 public:
  // layer_devices[l]: device of layer l, outlives the store.
  KvStore(const KvLayout& layout, std::vector<Device*> layer_devices) : layout_(layout), layer_devices_(std::move(layer_devices)) {}

  // Allocates all regions unless that has happened. On failure nothing is held.
  Status ensure();
  // Copies rows between blocks in every layer.
  Status copy_blocks(std::span<const BlockCopy> copies);

  // How the keys of one layer are turned when its rows move: found by find_k_rotations, and the weights on the layer's device.
  struct LayerRotation {
    KvRotation rotation;
    WeightSet* weights = nullptr;
  };
  // Whether move_rows() would succeed, asked of every layer before a row changes anywhere.
  Status check_removal(const KvRemoval& removal, std::span<const LayerRotation> layers) const;
  // Moves the rows in every layer: V verbatim, K turned back by removal.count. Where a device fails in spite of the check, rows from
  // removal.first on are lost; those before it stand.
  Status move_rows(const KvRemoval& removal, std::span<const LayerRotation> layers);

  // One layer's rows of the ranges in canonical form: all K rows, then all V rows. The span has exactly their size.
  Status export_rows(uint32_t layer, std::span<const KvRows> rows, std::span<std::byte> out) const;
  Status import_rows(uint32_t layer, std::span<const KvRows> rows, std::span<const std::byte> in);

  const KvLayout& layout() const { return layout_; }
  // By layer; empty before ensure().
  std::span<const KvLayer> layers() const { return layers_; }
  uint64_t size_bytes() const { return size_bytes_; }

 private:
  KvLayout layout_;
  std::vector<Device*> layer_devices_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::vector<KvLayer> layers_;
  uint64_t size_bytes_ = 0;
};

}  // namespace minfer
