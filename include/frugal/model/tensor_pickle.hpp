// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <frugal/model/pickle_stack.hpp>

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
