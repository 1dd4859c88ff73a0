// From bytes to the tree: checks the bytes, then builds nodes from the events of yaml-cpp, the only file that knows it.
// The events are used because yaml-cpp's own tree hides what must be refused (duplicate keys, anchors, quotes, further
// documents). An alias is refused at its event, before anything could be expanded.
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <sstream>

#include "yaml/document.hpp"

namespace minfer::yaml {
namespace {

// Length of the valid UTF-8 sequence at text[i] (RFC 3629: no overlong forms, no surrogates, at most U+10FFFF), or 0.
size_t utf8_length(std::string_view text, size_t i) {
  const auto byte = [&](size_t k) { return static_cast<unsigned char>(k < text.size() ? text[k] : 0); };
  const auto follows = [&](size_t k, unsigned low = 0x80, unsigned high = 0xBF) { return byte(k) >= low && byte(k) <= high; };
  const unsigned lead = byte(i);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return follows(i + 1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) return follows(i + 1, lead == 0xE0 ? 0xA0 : 0x80, lead == 0xED ? 0x9F : 0xBF) && follows(i + 2) ? 3 : 0;
  if (lead >= 0xF0 && lead <= 0xF4)
    return follows(i + 1, lead == 0xF0 ? 0x90 : 0x80, lead == 0xF4 ? 0x8F : 0xBF) && follows(i + 2) && follows(i + 3) ? 4 : 0;
  return 0;
}

// Refuses bytes that YAML does not allow. yaml-cpp would guess other encodings, and end the text at byte 04.
Status check_bytes(std::string_view text, const Node& origin) {
  Node at = origin;
  at.line = 1;
  size_t line_start = 0;
  for (size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    at.column = static_cast<int>(i - line_start) + 1;
    const size_t length = utf8_length(text, i);
    if (length == 0) return at.error(minfer::text("byte {:02x} is not UTF-8; save the file as UTF-8", byte));
    if ((byte < 0x20 && byte != '\n' && byte != '\t' && byte != '\r') || byte == 0x7F)
      return at.error(minfer::text("control byte {:02x} is not allowed", byte));
    if (byte == '\r' && (i + 1 == text.size() || text[i + 1] != '\n'))
      return at.error("a carriage return without a line feed is not a line end");
    i += length;
    if (byte == '\n') {
      ++at.line;
      line_start = i;
    }
  }
  return {};
}

// Carries our own refusal out of the parser.
struct Refusal : std::exception {
  explicit Refusal(Error e) : error(std::move(e)) {}
  const char* what() const noexcept override { return error.text.c_str(); }
  Error error;
};

class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(std::string_view text, std::shared_ptr<const std::string> file) : text_(text), file_(std::move(file)) {}

  std::optional<Node> root;

  // The innermost list or mapping that is still open, or null.
  const Node* open() const { return stack_.empty() ? nullptr : &stack_.back().node; }
  // The path of the value that comes next, or of the last one if it stood in this line.
  std::string path_near(int line) const { return last_line_ == line ? last_path_ : next_path(); }

 private:
  std::string next_path() const {
    if (stack_.empty()) return "";
    const Frame& top = stack_.back();
    if (top.node.kind == Node::Kind::kSequence) return minfer::text("{}[{}]", top.node.path, top.node.children.size());
    if (!top.key) return top.node.path;
    return top.node.path.empty() ? top.key->text : top.node.path + "." + top.key->text;
  }

 public:
  void OnDocumentStart(const YAML::Mark& mark) override {
    if (root) throw Refusal(at(mark).error("a second document begins here; a file holds one"));
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Node node = begin(mark, "?", anchor);
    if (expects_key()) throw Refusal(node.error("a key must be plain text; to use the word null, put it in quotes"));
    if (stack_.empty()) throw Refusal(node.error("the document is empty"));
    const Frame& top = stack_.back();
    if (top.key) node = top.key->at_key(node);
    // "[a" without its bracket arrives as the pair "a:" in a list.
    if (stack_.size() > 1 && stack_[stack_.size() - 2].flow_list)
      throw Refusal(node.error("has no value, or the list around it is not closed with ']'"));
    throw Refusal(node.error("has no value; write one or remove it (\"\" is empty text, [] an empty list)"));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { refuse_anchor(at(mark)); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, const std::string& value) override {
    // "!" means quoted, or an explicit "!" in front of the value.
    const size_t pos = mark.pos < 0 ? text_.size() : static_cast<size_t>(mark.pos);
    const bool quoted = tag == "!" && !(pos < text_.size() && text_[pos] == '!');
    Node node = begin(mark, quoted ? "?" : tag, anchor);
    node.text = value;
    node.quoted = quoted;
    if (expects_key())
      take_key(std::move(node));
    else
      add(std::move(node));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YAML::EmitterStyle::value style) override {
    push(begin(mark, tag, anchor), Node::Kind::kSequence);
    stack_.back().flow_list = style == YAML::EmitterStyle::Flow;
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    push(begin(mark, tag, anchor), Node::Kind::kMapping);
  }
  void OnSequenceEnd() override { pop(); }
  void OnMapEnd() override { pop(); }

 private:
  struct Key {
    std::string text;
    int line;
    int column;
    Node at_key(Node node) const {
      node.line = line;
      node.column = column;
      return node;
    }
  };
  struct Frame {
    Node node;
    std::optional<Key> key;  // mappings: the key whose value comes next
    bool flow_list = false;  // a list in [ ]
  };

  bool expects_key() const { return !stack_.empty() && stack_.back().node.kind == Node::Kind::kMapping && !stack_.back().key; }

  Node at(const YAML::Mark& mark) const {
    Node node;
    node.file = file_;
    node.line = mark.line + 1;
    node.column = mark.column + 1;
    node.path = next_path();
    return node;
  }

  [[noreturn]] static void refuse_anchor(const Node& node) {
    throw Refusal(node.error("anchors (&name) and aliases (*name) are not accepted; write the value out, or put it in quotes"));
  }

  // What holds for every node: counted, no anchor, no tag.
  Node begin(const YAML::Mark& mark, std::string_view tag, YAML::anchor_t anchor) {
    Node node = at(mark);
    if (++n_nodes_ > kMaxNodes) throw Refusal(node.error(minfer::text("more than {} values in one file", kMaxNodes)));
    if (anchor != YAML::NullAnchor) refuse_anchor(node);
    last_line_ = node.line;
    last_path_ = node.path;
    if (tag != "?")
      throw Refusal(node.error(minfer::text("tags are not accepted (found {}); quote text that begins with '!'", quote(tag))));
    return node;
  }

  void take_key(Node node) {
    Frame& top = stack_.back();
    const std::string_view name = node.text;
    if (name.empty()) throw Refusal(node.error("a key may not be empty"));
    if (name.size() > kMaxKeyBytes) throw Refusal(node.error(minfer::text("a key is longer than {} bytes", kMaxKeyBytes)));
    for (const char c : name)
      if (static_cast<unsigned char>(c) < 0x20) throw Refusal(node.error(minfer::text("control byte in key {}", quote(name))));
    if (name == "<<" && !node.quoted) throw Refusal(node.error("merge keys (<<) are not accepted; write the keys out"));
    top.key = Key{node.text, node.line, node.column};
    last_path_ = next_path();
    if (const Node* first = top.node.find(name)) {
      node.path = next_path();
      throw Refusal(node.error(minfer::text("is given twice, first in line {}", first->key_line)));
    }
  }

  void push(Node node, Node::Kind kind) {
    if (expects_key()) throw Refusal(node.error("a key must be plain text, not a list or a mapping"));
    if (stack_.size() >= kMaxDepth) throw Refusal(node.error(minfer::text("nested more than {} levels deep", kMaxDepth)));
    node.kind = kind;
    stack_.push_back(Frame{std::move(node), std::nullopt, false});
  }

  void pop() {
    Node node = std::move(stack_.back().node);
    stack_.pop_back();
    add(std::move(node));
  }

  void add(Node node) {
    if (stack_.empty()) {
      root = std::move(node);
      return;
    }
    Frame& top = stack_.back();
    if (top.key) {
      node.key = top.key->text;
      node.key_line = top.key->line;
      node.key_column = top.key->column;
      top.key.reset();
    }
    top.node.children.push_back(std::move(node));
  }

  std::string_view text_;
  std::shared_ptr<const std::string> file_;
  std::vector<Frame> stack_;
  size_t n_nodes_ = 0;
  int last_line_ = 0;
  std::string last_path_;
};

bool indented_with_tab(std::string_view text, int line_number) {
  for (int line = 0; line < line_number; ++line) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return false;
    text.remove_prefix(end + 1);
  }
  const size_t indent = std::min(text.find_first_not_of(" \t"), text.size());
  return text.substr(0, indent).find('\t') != std::string_view::npos;
}

// yaml-cpp's own complaint, with its place and, for the frequent mistakes, what to do.
Error syntax_error(const YAML::Exception& e, std::string_view text, const TreeBuilder& builder, Node at) {
  const bool unclosed = e.msg == YAML::ErrorMsg::END_OF_MAP_FLOW || e.msg == YAML::ErrorMsg::END_OF_SEQ_FLOW;
  if (unclosed && builder.open()) return builder.open()->error("opened here and never closed");
  at.line = std::max(e.mark.line, 0) + 1;
  at.column = std::max(e.mark.column, 0) + 1;
  at.path = builder.path_near(at.line);
  if (indented_with_tab(text, e.mark.line)) return at.error("the line is indented with a tab; use spaces");
  if (e.msg == YAML::ErrorMsg::MAP_VALUE)
    return at.error("': ' is not expected here; check the indentation, and quote text that holds ': '");
  return at.error(minfer::text("not valid YAML: {}", e.msg));
}

}  // namespace

Result<Document> parse_yaml(std::string_view text, std::string_view file_name) {
  Node origin;
  origin.file = std::make_shared<const std::string>(file_name);
  origin.line = origin.column = 1;
  if (text.size() > kMaxFileBytes) return origin.error(minfer::text("the file is larger than {} bytes", kMaxFileBytes));
  if (text.substr(0, 3) == "\xEF\xBB\xBF") text.remove_prefix(3);
  MINFER_TRY(check_bytes(text, origin));

  TreeBuilder builder(text, origin.file);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const Refusal& refusal) {
    return refusal.error;
  } catch (const YAML::Exception& e) {
    return syntax_error(e, text, builder, origin);
  } catch (const std::exception& e) {
    return origin.error(minfer::text("cannot be read: {}", e.what()));
  }
  if (!builder.root) return origin.error("the document is empty");
  return Document{std::move(*builder.root)};
}

}  // namespace minfer::yaml
