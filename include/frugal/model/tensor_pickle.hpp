// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace frugal::detail {

/// What a pickle of tensors is made of. Owned by its TensorPickle. Texts are where the pickle has them: one
/// text may be that of many values, and copies of it would take memory without bound.
struct PickleValue {
  enum class Kind : unsigned char {
    none,
    boolean,
    integer,
    real,
    text,
    tuple,
    list,
    dict,
    global,
    storage,
    tensor,
  };

  Kind kind = Kind::none;
  std::int64_t number = 0;  ///< integer, boolean; of a tensor its offset in elements
  double real = 0;
  std::string_view text{};            ///< of a storage its key, of a global its name
  std::vector<PickleValue*> items{};  ///< of a dict key, value, key, value
  std::string_view type{};  ///< "float32", of a storage or tensor; of a global that is one
  std::vector<std::int64_t> sizes{};
  std::vector<std::int64_t> strides{};
  PickleValue const* storage = nullptr;
  std::string_view view{};  ///< of a tensor that is one of its storage's numbers changed: "conj"

  bool is(Kind wanted) const { return kind == wanted; }
  /// The value of a key, in a dict; null without it.
  PickleValue const* find(std::string_view key) const;
};

/// A text of a file as errors show it. It may be most of the file.
std::string shown(std::string_view text);

/// The state of reading a pickle: its bytes, and the stack, marks and memo of its values.
class PickleStack {
 public:
  PickleStack(std::string_view bytes, std::string place);
  PickleStack(PickleStack const&) = delete;
  PickleStack& operator=(PickleStack const&) = delete;

 protected:
  using Kind = PickleValue::Kind;

  [[noreturn]] void refuse(std::string what, std::string why, std::string fix) const;
  [[noreturn]] void damaged(std::string why) const;
  [[noreturn]] void refuse_object(std::string why) const;

  // ---- the bytes --------------------------------------------------------------------------------

  std::string_view take(std::uint64_t count);
  /// A little-endian number of so many bytes.
  std::uint64_t number(std::size_t width);
  std::string line();

  // ---- the stack --------------------------------------------------------------------------------

  PickleValue* made(Kind kind);
  void push(PickleValue* value);
  void push_text(std::string_view text);
  void push_integer(std::int64_t value, Kind kind = Kind::integer);
  PickleValue* top() const;
  PickleValue* pop();
  /// What was pushed since the last mark.
  std::vector<PickleValue*> pop_to_mark();
  void push_tuple(std::vector<PickleValue*> values);
  void push_tuple(std::size_t count);
  void append(std::vector<PickleValue*> const& values, Kind to);
  void remember(std::uint64_t number);
  void recall(std::uint64_t number);

  /// The next opcode; errors name its byte.
  unsigned char next();
  bool is_empty() const { return stack_.empty() && marks_.empty(); }
  void mark() { marks_.push_back(stack_.size()); }
  std::size_t remembered() const { return memo_.size(); }

 private:
  std::string_view bytes_;
  std::string place_;
  std::size_t at_ = 0;
  std::size_t began_ = 0;          ///< of the opcode that is being read
  std::deque<PickleValue> arena_;  ///< pickles may refer to themselves
  std::vector<PickleValue*> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint64_t, PickleValue*> memo_;
};

}  // namespace frugal::detail

// LibTorch's own reader (torch::jit::Unpickler) is not used: it makes nothing of an OrderedDict, which
// every state_dict() is, and looks up and constructs TorchScript classes.
namespace frugal::detail {

/// A type of tensors: the storage that has it alone, if there is one, and the type itself.
struct PickleType {
  std::string_view storage;
  std::string_view plain;
};
inline constexpr std::array<PickleType, 20> pickle_types{{
    {"torch.FloatStorage", "float32"},
    {"torch.DoubleStorage", "float64"},
    {"torch.HalfStorage", "float16"},
    {"torch.BFloat16Storage", "bfloat16"},
    {"torch.LongStorage", "int64"},
    {"torch.IntStorage", "int32"},
    {"torch.ShortStorage", "int16"},
    {"torch.CharStorage", "int8"},
    {"torch.ByteStorage", "uint8"},
    {"torch.BoolStorage", "bool"},
    {"torch.ComplexFloatStorage", "complex64"},
    {"torch.ComplexDoubleStorage", "complex128"},
    {"", "uint16"},
    {"", "uint32"},
    {"", "uint64"},
    {"", "float8_e4m3fn"},
    {"", "float8_e5m2"},
    {"", "float8_e4m3fnuz"},
    {"", "float8_e5m2fnuz"},
    {"", "float8_e8m0fnu"},
}};

/// Reads the pickle inside of a file of torch.save: dicts, lists, tuples, texts, numbers and tensors,
/// and nothing else. It knows the few globals that make these, by name, and calls nothing: a pickle
/// with code, or with an object of any class, is refused where it first names it.
///
/// Source  Python's pickletools.py (protocols 2 to 5); torch/_utils.py, _rebuild_tensor_v2 and _v3;
///         torch/serialization.py, persistent_id.
class TensorPickle : private PickleStack {
 public:
  /// `bytes`  must outlive this: the texts are in it.
  /// Errors   FormatError with the byte for anything else; `place` is what they call the file.
  TensorPickle(std::string_view bytes, std::string place);

  PickleValue const& root() const { return *root_; }

 private:
  // ---- opcodes ----------------------------------------------------------------------------------

  void run(unsigned char opcode);

  void version(std::uint64_t protocol) const;
  void stop();
  void push_long(std::uint64_t width);
  void push_real();
  void append_one();
  void set_one();
  /// The attributes of a state dict: its versions (_metadata), which C++ modules do not have.
  void build();

  // ---- globals ----------------------------------------------------------------------------------

  void global();
  void stack_global();
  void push_global(std::string const& name);

  // ---- tensors ----------------------------------------------------------------------------------

  /// ("storage", type, key, device, elements). The device does not matter: bytes are bytes.
  PickleValue* storage_of(PickleValue const* id);

  void reduce();

  /// (storage, offset, sizes, strides, requires_grad, hooks), of version 3 with a type; then, of a
  /// lazily conjugated or negated tensor, a dict that says so.
  PickleValue* tensor(std::vector<PickleValue*> const& arguments, bool typed);
  /// The first key of a tensor's metadata that is not false; empty without.
  std::string_view set_bit(PickleValue const& metadata) const;
  std::vector<std::int64_t> integers(PickleValue const& tuple) const;

  PickleValue const* root_ = nullptr;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/model/tensor_pickle.ipp>
#endif
