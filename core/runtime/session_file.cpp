#include "runtime/session_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/checked_math.hpp"
#include "base/out_of_memory.hpp"

namespace minfer {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kMagic = "MINFERSE";
constexpr uint32_t kVersion = 1;
constexpr size_t kPrefixBytes = 24;  // up to the header
constexpr size_t kChecksumBytes = 8;
constexpr size_t kHeaderDepth = 3;  // header, messages, message
constexpr size_t kSampleBytes = 64, kSamples = 16, kWholeTensorBytes = size_t{1} << 20;

class Fnv1a {
 public:
  void add(const void* data, size_t n) {
    const auto* bytes = static_cast<const unsigned char*>(data);
    for (size_t i = 0; i < n; ++i) hash_ = (hash_ ^ bytes[i]) * 0x100000001b3ull;
  }
  void add(uint64_t value) { add(&value, sizeof value); }
  void add(std::string_view text) { add(text.data(), text.size()); }
  uint64_t value() const { return hash_; }

 private:
  uint64_t hash_ = 0xcbf29ce484222325ull;
};

// A rename would take the place of a device or of a link, not go through it.
Status check_kind(const std::filesystem::path& path) {
  struct stat status = {};
  if (::lstat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) return invalid("there is something that is no regular file");
  return {};
}

// A new file that takes the place of an old one when it is complete. Without commit() the old one stays.
class ReplacingFile {
 public:
  static Result<ReplacingFile> create(const std::filesystem::path& path) {
    MINFER_TRY(check_kind(path));
    if (path.string().find('\0') != std::string::npos) return invalid("a path cannot hold a zero byte");
    ReplacingFile file(path);
    std::string name = path.string() + ".XXXXXX";  // beside the file: a rename does not cross file systems
    file.fd_ = ::mkostemp(name.data(), O_CLOEXEC);
    if (file.fd_ < 0) return io_error("cannot create a file beside it: {}", std::strerror(errno));
    file.temporary_ = name;
    return file;
  }
  ReplacingFile(ReplacingFile&& other) noexcept
      : path_(std::move(other.path_)), temporary_(std::move(other.temporary_)), fd_(std::exchange(other.fd_, -1)), hash_(other.hash_) {}
  ReplacingFile& operator=(ReplacingFile&&) = delete;
  ~ReplacingFile() {
    if (fd_ < 0) return;
    ::close(fd_);
    ::unlink(temporary_.c_str());
  }

  Status write(const void* data, size_t n) {
    hash_.add(data, n);
    return write_all(data, n);
  }
  Status commit() {
    const uint64_t checksum = hash_.value();
    MINFER_TRY(write_all(&checksum, sizeof checksum));
    if (::fsync(fd_) != 0) return failed();
    if (::close(std::exchange(fd_, -1)) != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0) {
      const Error error = failed();
      ::unlink(temporary_.c_str());
      return error;
    }
    // The new name must be on the disk too. A file system that cannot do this has done all it can.
    const std::filesystem::path folder = path_.has_parent_path() ? path_.parent_path() : std::filesystem::path(".");
    if (const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); fd >= 0) {
      (void)::fsync(fd);
      ::close(fd);
    }
    return {};
  }

 private:
  explicit ReplacingFile(const std::filesystem::path& path) : path_(path) {}
  Error failed() const { return io_error("{}: {}", temporary_.string(), std::strerror(errno)); }
  Status write_all(const void* data, size_t n) {
    const char* bytes = static_cast<const char*>(data);
    while (n > 0) {
      const ssize_t written = ::write(fd_, bytes, n);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return failed();
      bytes += written;
      n -= static_cast<size_t>(written);
    }
    return {};
  }

  std::filesystem::path path_, temporary_;
  int fd_ = -1;
  Fnv1a hash_;
};

std::string_view kv_format_name(KvFormat format) {
  switch (format) {
    case KvFormat::kF32: return "f32";
    case KvFormat::kF16: return "f16";
    case KvFormat::kQ8_0: return "q8_0";
  }
  return "unknown";
}

// "cpu:0-23", or "gpu:0-11 cpu:12-23".
std::string kv_backends(const LoadedModel& model) {
  std::string names;
  const auto& devices = model.placement().kv_device;
  for (size_t first = 0; first < devices.size();) {
    size_t end = first;
    while (end < devices.size() && devices[end] == devices[first]) ++end;
    names += text("{}{}:{}-{}", names.empty() ? "" : " ", model.devices()[devices[first]]->info().name, first, end - 1);
    first = end;
  }
  return names;
}

// Messages are bytes: a reply that was cut short may end inside a character.
Json bytes_json(std::string_view bytes) { return Json::binary(std::vector<uint8_t>(bytes.begin(), bytes.end())); }
std::string json_bytes(const Json& json) {
  const auto& bytes = json.get_binary();
  return {bytes.begin(), bytes.end()};
}

Json header_json(const SessionIdentity& identity, const ConversationState& state) {
  Json messages = Json::array();
  for (const ChatMessage& message : state.messages) messages.push_back({bytes_json(message.role), bytes_json(message.content)});
  return {{"model", identity.model},
          {"fingerprint", identity.fingerprint},
          {"backends", identity.backends},
          {"kv_format", identity.kv_format},
          {"shape", {identity.n_layers, identity.n_head_kv, identity.head_dim}},
          {"messages", messages},
          {"tokens", state.tokens},
          {"n_bos", state.n_bos},
          {"reply_start", state.reply_start},
          {"random", state.sampler.random},
          {"mirostat_mu", state.sampler.mirostat_mu},
          {"history", state.sampler.history}};
}

// The parser calls itself for what lies within something else, so what lies too deep is found before it looks: at most `limit` arrays and
// objects within each other, and nothing that to_cbor does not write (tags, lengths left open).
bool nests_within(std::span<const uint8_t> cbor, size_t limit) {
  std::vector<uint64_t> left = {1};  // by level: items still to come
  for (size_t at = 0; at < cbor.size();) {
    const unsigned major = cbor[at] >> 5, info = cbor[at] & 31;
    ++at;
    const size_t n_bytes = info < 24 ? 0 : size_t{1} << (info - 24);
    if (info > 27 || major == 6 || n_bytes > cbor.size() - at) return false;
    uint64_t argument = info < 24 ? info : 0;
    for (size_t i = 0; i < n_bytes; ++i) argument = argument << 8 | cbor[at++];
    --left.back();
    if (major >= 2 && major <= 5 && argument > cbor.size() - at) return false;  // each item and each byte needs one
    if (major == 2 || major == 3) at += argument;
    if (major == 4 || major == 5) left.push_back(major == 4 ? argument : 2 * argument);
    if (left.size() > limit + 1) return false;
    while (left.back() == 0) {
      left.pop_back();
      if (left.empty()) return at == cbor.size();
    }
  }
  return false;
}

Status check_identity(const Json& header, const SessionIdentity& identity) {
  const auto differs = [](std::string_view what, const std::string& saved, const std::string& now) {
    return invalid("it was saved with {} {}, this run has {}", what, saved, now);
  };
  if (header.at("fingerprint").get<uint64_t>() != identity.fingerprint)
    return differs("model", header.at("model").get<std::string>(), identity.model + ", or another file of that name");
  if (header.at("kv_format").get<std::string>() != identity.kv_format)
    return differs("KV format", header.at("kv_format").get<std::string>(), identity.kv_format);
  if (header.at("backends").get<std::string>() != identity.backends)
    return differs("backends", header.at("backends").get<std::string>(), identity.backends);
  if (header.at("shape") != Json({identity.n_layers, identity.n_head_kv, identity.head_dim})) return invalid("its KV has another shape");
  return {};
}

ConversationState state_of(const Json& header) {
  ConversationState state;
  for (const Json& message : header.at("messages")) state.messages.push_back({json_bytes(message.at(0)), json_bytes(message.at(1))});
  header.at("tokens").get_to(state.tokens);
  header.at("n_bos").get_to(state.n_bos);
  header.at("reply_start").get_to(state.reply_start);
  header.at("random").get_to(state.sampler.random);
  header.at("mirostat_mu").get_to(state.sampler.mirostat_mu);
  header.at("history").get_to(state.sampler.history);
  return state;
}

}  // namespace

SessionIdentity session_identity(const Model& model, const Session& session) {
  Fnv1a hash;
  hash.add(model.file().total_bytes());
  for (const gguf::Value& value : model.file().metadata().values()) {
    hash.add(value.name);
    hash.add(value.bytes.data(), value.bytes.size());
  }
  for (const gguf::Tensor& tensor : model.file().tensors()) {
    hash.add(tensor.name);
    hash.add(static_cast<uint64_t>(tensor.type));
    for (const uint64_t dim : tensor.dims) hash.add(dim);
    // Large tensors are sampled: reading them all would take longer than loading the model.
    const size_t n = tensor.bytes.size(), step = n <= kWholeTensorBytes ? kSampleBytes : n / kSamples;
    for (size_t at = 0; at < n; at += step) hash.add(tensor.bytes.data() + at, std::min(kSampleBytes, n - at));
  }
  SessionIdentity identity;
  identity.model = model.general_name();
  identity.fingerprint = hash.value();
  identity.backends = kv_backends(model.engine());
  identity.kv_format = kv_format_name(session.cparams().kv_format);
  identity.n_layers = model.info().n_layers;
  identity.n_head_kv = model.info().n_head_kv;
  identity.head_dim = model.info().head_dim;
  return identity;
}

Status check_session_place(const std::filesystem::path& path) {
  const std::string what = text("session file {}", path.string());
  if (Status kind = check_kind(path); !kind.ok()) return kind.error().in(what);
  const std::filesystem::path folder = path.parent_path();
  if (::access(folder.empty() ? "." : folder.c_str(), W_OK) != 0)
    return io_error("{}: its folder cannot be written: {}", what, std::strerror(errno));
  return {};
}

Status save_session(const std::filesystem::path& path, const SessionIdentity& identity, const ConversationState& state,
                    const Session& session) {
  const Status saved = catch_out_of_memory([&]() -> Status {
    const std::vector<uint8_t> header = Json::to_cbor(header_json(identity, state));
    const uint32_t version_and_reserved[2] = {kVersion, 0};
    const uint64_t header_bytes = header.size();
    MINFER_ASSIGN(ReplacingFile file, ReplacingFile::create(path));
    MINFER_TRY(file.write(kMagic.data(), kMagic.size()));
    MINFER_TRY(file.write(version_and_reserved, sizeof version_and_reserved));
    MINFER_TRY(file.write(&header_bytes, sizeof header_bytes));
    MINFER_TRY(file.write(header.data(), header.size()));
    std::vector<std::byte> rows(session.kv_layer_bytes(session.cursor(0)));
    for (uint32_t layer = 0; layer < identity.n_layers && !rows.empty(); ++layer) {
      MINFER_TRY(session.export_kv(0, layer, rows));
      MINFER_TRY(file.write(rows.data(), rows.size()));
    }
    return file.commit();
  });
  if (!saved.ok()) return saved.error().in(text("session file {}", path.string()));
  return {};
}

Status SavedSession::read(const SessionIdentity& identity, const Session& session) {
  const std::span<const std::byte> file = file_.bytes();
  if (file.size() < kPrefixBytes + kChecksumBytes || std::memcmp(file.data(), kMagic.data(), kMagic.size()) != 0)
    return invalid("this is no session file");
  uint32_t version;
  uint64_t header_bytes, checksum;
  std::memcpy(&version, file.data() + 8, sizeof version);
  std::memcpy(&header_bytes, file.data() + 16, sizeof header_bytes);
  if (version != kVersion) return unsupported("it has version {}, this program reads version {}", version, kVersion);
  const std::span<const std::byte> covered = file.first(file.size() - kChecksumBytes);
  std::memcpy(&checksum, file.data() + covered.size(), sizeof checksum);
  Fnv1a hash;
  hash.add(covered.data(), covered.size());
  if (hash.value() != checksum) return invalid("it is damaged: its checksum does not match");
  if (header_bytes > covered.size() - kPrefixBytes) return invalid("its header of {} bytes is longer than the file", header_bytes);

  const auto header_span = covered.subspan(kPrefixBytes, header_bytes);
  const auto* begin = reinterpret_cast<const uint8_t*>(header_span.data());
  if (!nests_within({begin, header_span.size()}, kHeaderDepth)) return invalid("its header is not that of a session");
  const Json header = Json::from_cbor(begin, begin + header_span.size(), true, false);
  if (header.is_discarded()) return invalid("its header cannot be read");
  MINFER_TRY(check_identity(header, identity));
  state_ = state_of(header);
  const size_t n_tokens = state_.tokens.size();
  if (n_tokens > session.cparams().n_ctx) return invalid("it holds {} tokens, n_ctx is {}; raise n_ctx", n_tokens, session.cparams().n_ctx);
  // What the conversation would refuse is refused here, while the one under way still stands.
  for (const int32_t token : state_.tokens)
    if (token < 0 || static_cast<uint32_t>(token) >= session.model().info().n_vocab)
      return invalid("it holds token {}, the vocabulary has {}", token, session.model().info().n_vocab);
  if (state_.n_bos > n_tokens || state_.reply_start > n_tokens || !std::isfinite(state_.sampler.mirostat_mu))
    return invalid("its header contradicts itself");
  kv_ = covered.subspan(kPrefixBytes + header_bytes);
  layer_bytes_ = session.kv_layer_bytes(static_cast<uint32_t>(n_tokens));
  if (checked_mul(layer_bytes_, identity.n_layers) != kv_.size())
    return invalid("its KV has {} bytes, {} tokens need {} for each of {} layers", kv_.size(), n_tokens, layer_bytes_, identity.n_layers);
  return file_.check_unchanged();
}

Result<SavedSession> SavedSession::open(const std::filesystem::path& path, const SessionIdentity& identity, const Session& session) {
  auto opened = catch_out_of_memory([&]() -> Result<SavedSession> {
    SavedSession saved;
    MINFER_ASSIGN(saved.file_, FileMapping::open(path));
    try {
      MINFER_TRY(saved.read(identity, session));
    } catch (const Json::exception&) {  // a header of other keys or types
      return invalid("its header is not that of a session");
    }
    return saved;
  });
  if (!opened.ok()) return opened.error().in(text("session file {}", path.string()));
  return opened;
}

Status SavedSession::restore(Session& session, Conversation& conversation) const {
  return catch_out_of_memory([&]() -> Status {
    if (!state_.tokens.empty())
      MINFER_TRY(
          session.import_kv(0, static_cast<uint32_t>(state_.tokens.size()), [&](uint32_t layer, std::span<std::byte> bytes) -> Status {
            std::memcpy(bytes.data(), kv_.data() + layer * layer_bytes_, bytes.size());
            return {};
          }));
    Status restored = file_.check_unchanged();
    if (restored.ok()) restored = conversation.restore(state_);
    if (!restored.ok()) MINFER_TRY(session.rollback(0, 0));
    return restored;
  });
}

}  // namespace minfer
