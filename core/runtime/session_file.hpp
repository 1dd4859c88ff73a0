// A conversation on disk: messages, tokens, sampler and the KV rows, so that a later run goes on bit for bit without computing any of it
// again. Written beside the file and renamed over it when it is whole and on the disk: what was there before survives a crash, a kill
// and a full disk.
//
// Format, version 1, little endian:  char magic[8] "MINFERSE"  u32 version  u32 reserved 0  u64 header_bytes  CBOR header
// KV: for each layer all K rows, then all V rows, in the canonical form of minfer/abi/backend.h  u64 FNV-1a of everything before it.
#pragma once

#include <filesystem>
#include <string>

#include "base/file_mapping.hpp"
#include "runtime/conversation.hpp"
#include "runtime/model.hpp"

namespace minfer {

// What a file must agree with to be resumed.
struct SessionIdentity {
  std::string model;         // for messages
  uint64_t fingerprint = 0;  // of the model file: sizes, metadata, tensor table, a sample of each tensor
  std::string backends;      // that hold KV, with their layers: "cpu:0-23"
  std::string kv_format;
  uint32_t n_layers = 0;
  uint32_t n_head_kv = 0;
  uint32_t head_dim = 0;
};

SessionIdentity session_identity(const Model& model, const Session& session);

// Whether save_session could write there: for asking before there is anything to lose.
Status check_session_place(const std::filesystem::path& path);
// Refuses to take the place of anything but a regular file.
Status save_session(const std::filesystem::path& path, const SessionIdentity& identity, const ConversationState& state,
                    const Session& session);

// A session file that was read and verified as a whole: nothing in it can be refused any more but by a device.
class SavedSession {
 public:
  static Result<SavedSession> open(const std::filesystem::path& path, const SessionIdentity& identity, const Session& session);

  // Into an empty sequence 0 and the conversation over it. After a failure the sequence is empty and the conversation is what it was.
  Status restore(Session& session, Conversation& conversation) const;

 private:
  Status read(const SessionIdentity& identity, const Session& session);

  FileMapping file_;
  std::span<const std::byte> kv_;
  uint64_t layer_bytes_ = 0;
  ConversationState state_;
};

}  // namespace minfer
