// Session files that were made with care: whole, their checksum right, and wrong all the same.
#include <catch2/catch.hpp>
#include <cstring>
#include <nlohmann/json.hpp>

#include "runtime/chat_session.hpp"
#include "runtime/session_file.hpp"
#include "support/support.hpp"
#include "support/toy_architecture.hpp"
#include "unit/runtime/mock_chat.hpp"

using namespace minfer;
using namespace minfer::test;
using Json = nlohmann::json;

namespace {

constexpr size_t kPrefix = 24, kChecksum = 8;

// A byte is a token. The toy has 50, so messages are made of '0' and '1'.
class NumbersText final : public ChatText {
 public:
  Result<RenderedChat> render(const std::vector<ChatMessage>& messages, bool add_generation_prompt) const override {
    RenderedChat chat;
    for (const ChatMessage& message : messages) chat.text += (message.role == "assistant" ? "0" : "") + message.content + "\n";
    if (add_generation_prompt) chat.text += "0";
    return chat;
  }
  Result<std::vector<int32_t>> encode(const RenderedChat& chat, size_t first) const override {
    return std::vector<int32_t>(chat.text.begin() + static_cast<std::ptrdiff_t>(first), chat.text.end());
  }
  std::string as_read(const std::string& message) const override { return message; }
  std::optional<int32_t> missing_bos(std::span<const int32_t>) const override { return std::nullopt; }
  Result<std::string_view> token_bytes(int32_t token) const override { return mock_.token_bytes(token); }
  bool is_end_of_generation(int32_t) const override { return false; }

 private:
  MockText mock_;
};

struct Saved {
  Saved() : session(make_session()), engine(*session, 16), conversation(engine, text, sampler(), options(), "0110") {
    identity = {"toy", 77, "reference:0-1", "f32", 2, 2, 8};
    REQUIRE(conversation.user_turn("1001", {}).ok());
    state = conversation.state();
    REQUIRE(save_session(path(), identity, state, *session).ok());
    good = read_file(path());
    uint64_t header_bytes = 0;
    std::memcpy(&header_bytes, good.data() + 16, 8);
    header = Json::from_cbor(good.substr(kPrefix, header_bytes));
    kv = good.substr(kPrefix + header_bytes, good.size() - kChecksum - kPrefix - header_bytes);
  }

  static sample::Sampler sampler() { return *sample::Sampler::create({}, 50, 256); }
  static ConversationOptions options() { return {.n_predict = 4, .stop = {}, .context_shift = false}; }
  std::unique_ptr<Session> make_session() const { return *Session::create(*toy.model, toy_cparams()); }
  std::filesystem::path path() const { return dir.path() / "talk"; }

  // A file of that header and those rows, with the checksum that belongs to it.
  static std::string file_of(const std::vector<uint8_t>& header, const std::string& rows) {
    const uint32_t version[2] = {1, 0};
    const uint64_t header_bytes = header.size();
    std::string bytes = "MINFERSE";
    bytes.append(reinterpret_cast<const char*>(version), 8).append(reinterpret_cast<const char*>(&header_bytes), 8);
    bytes.append(header.begin(), header.end()).append(rows);
    uint64_t hash = 0xcbf29ce484222325;
    for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    return bytes.append(reinterpret_cast<const char*>(&hash), 8);
  }
  // Why it is refused; empty where it is not.
  std::string refusal(const std::string& bytes) const {
    write_file(path(), bytes);
    const auto other = make_session();
    const auto opened = SavedSession::open(path(), identity, *other);
    return opened.ok() ? "" : opened.error().text;
  }
  std::string refusal(const Json& changed) const { return refusal(file_of(Json::to_cbor(changed), kv)); }
  // The header with one key changed.
  Json with(const std::string& key, const Json& value) const {
    Json changed = header;
    changed[key] = value;
    return changed;
  }

  ToyModel toy;
  TempDir dir;
  std::unique_ptr<Session> session;
  NumbersText text;
  SessionEngine engine;
  Conversation conversation;
  SessionIdentity identity;
  ConversationState state;
  std::string good, kv;
  Json header;
};

}  // namespace

TEST_CASE("session_file: a file that was put together from its parts is the file that was saved") {
  const Saved saved;
  CHECK(saved.file_of(Json::to_cbor(saved.header), saved.kv) == saved.good);
  CHECK(saved.refusal(saved.good).empty());
  CHECK(saved.refusal(saved.header).empty());
}

TEST_CASE("session_file: a header that contradicts itself or its rows is refused though its checksum is right") {
  const Saved saved;
  const auto n_tokens = static_cast<uint32_t>(saved.state.tokens.size());
  REQUIRE(n_tokens == 15);  // "0110\n1001\n0" and four
  std::vector<int32_t> tokens = saved.state.tokens;
  const auto refused = [&](const Json& header, const std::string& why) {
    const std::string text = saved.refusal(header);
    INFO(header.dump(-1, ' ', true, Json::error_handler_t::replace));
    CHECK_THAT(text, Catch::Contains("session file " + saved.path().string() + ": ") && Catch::Contains(why));
  };
  refused(saved.with("n_bos", n_tokens + 1), "contradicts itself");
  refused(saved.with("reply_start", n_tokens + 1), "contradicts itself");
  refused(saved.with("mirostat_mu", std::numeric_limits<double>::infinity()), "contradicts itself");
  tokens.push_back(1);
  refused(saved.with("tokens", tokens), "its KV has");
  tokens.resize(n_tokens - 1);
  refused(saved.with("tokens", tokens), "its KV has");
  refused(saved.with("tokens", Json::array()), "contradicts itself");  // its reply began somewhere
  tokens.push_back(50);
  refused(saved.with("tokens", tokens), "it holds token 50, the vocabulary has 50");
  tokens.back() = -1;
  refused(saved.with("tokens", tokens), "it holds token -1");
  refused(saved.with("tokens", std::vector<int32_t>(257, 1)), "n_ctx is 256");
  refused(saved.with("shape", {2, 2, 16}), "its KV has another shape");
  refused(saved.with("shape", {2, 2}), "its KV has another shape");
  refused(saved.with("fingerprint", 78), "it was saved with model");
  for (const char* key : {"messages", "tokens", "n_bos", "reply_start", "random", "mirostat_mu", "history", "shape", "backends", "model"}) {
    Json without = saved.header;
    without.erase(key);
    refused(without, key == std::string("model") ? "" : "not that of a session");
    refused(saved.with(key, Json{{"a", 1}}), key == std::string("model")   ? ""
                                             : key == std::string("shape") ? "another shape"
                                                                           : "not that of");
    if (key == std::string("history")) break;
  }
  refused(saved.with("messages", {1, 2}), "not that of a session");
  refused(saved.with("messages", Json::array({Json::array({Json::binary({65})})})), "not that of a session");
  refused(Json::array(), "not that of a session");
  for (const std::string& rows : {saved.kv + "x", saved.kv.substr(1), std::string()})
    CHECK_THAT(saved.refusal(saved.file_of(Json::to_cbor(saved.header), rows)), Catch::Contains("its KV has"));
}

TEST_CASE("session_file: a header that is nested deep or says more than it holds is refused before it is parsed") {
  const Saved saved;
  const std::vector<uint8_t> good = Json::to_cbor(saved.header);
  const auto refused = [&](const std::vector<uint8_t>& header) {
    CHECK_THAT(saved.refusal(saved.file_of(header, saved.kv)), Catch::Contains("its header is not that of a session"));
  };
  constexpr size_t kDeep = 5000000;  // a frame each would need more than a stack has
  for (const uint8_t opens : {0x81, 0x9f, 0xa1, 0xbf, 0x7f, 0x5f, 0xc0}) {
    std::vector<uint8_t> deep(kDeep, opens);
    refused(deep);
    deep.push_back(0);
    deep.insert(deep.end(), kDeep, 0xff);
    refused(deep);
  }
  std::vector<uint8_t> arrays(kDeep, 0x81), maps;  // whole items, to the innermost 0
  arrays.push_back(0);
  refused(arrays);
  for (size_t i = 0; i < kDeep; ++i) maps.insert(maps.end(), {0xa1, 0x60});
  maps.push_back(0);
  refused(maps);
  refused({});
  refused({0x9b, 0x10, 0, 0, 0, 0, 0, 0, 0});  // an array of 2^60
  refused({0xbb, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0});
  refused({0x5b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff});
  refused({0x1b, 1, 2});
  std::vector<uint8_t> more = good;
  more.push_back(0);
  refused(more);
  for (size_t n = 0; n < good.size(); ++n) refused({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(n)});
}

TEST_CASE("session_file: tokens that are not those of the messages leave the sequence again") {
  Saved saved;
  const auto restored = [&](const Json& header) {
    write_file(saved.path(), saved.file_of(Json::to_cbor(header), saved.kv));
    const auto session = saved.make_session();
    SessionEngine engine(*session, 16);
    Conversation conversation(engine, saved.text, saved.sampler(), saved.options(), std::nullopt);
    const auto opened = SavedSession::open(saved.path(), saved.identity, *session);
    REQUIRE(opened.ok());
    REQUIRE(opened->restore(*session, conversation).ok());
    CHECK(session->cursor(0) == conversation.mirror().size());
    return session->cursor(0);
  };
  const uint32_t whole = restored(saved.header);
  CHECK(whole == saved.state.tokens.size());
  Json other = saved.header;
  other["messages"][1][1] = Json::binary({'1', '1', '1'});
  CHECK(restored(other) == 6);  // "0110\n1"
  CHECK(restored(saved.with("messages", Json::array())) == 0);
}
