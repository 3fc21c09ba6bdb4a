// SPDX-License-Identifier: Apache-2.0
// A capture backend for the CPU, as strict as a GPU's.
#pragma once

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/stack.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <frugal/core/libtorch/capture_backend.hpp>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::support {

/// The calls of a Recorder, oldest first.
struct RecorderLog {
  std::vector<std::string> asked;

  int count(std::string const& what) const {
    return static_cast<int>(std::count(asked.begin(), asked.end(), what));
  }
};

/// Records operators with the very tensors of their calls, below autograd. A replay calls them
/// again, without running host code. Like a GPU's graph:
///
///  a host number passed to an operator keeps its value;
///  the capture itself changes nothing, generators included;
///  memory that the capture did not allocate must still exist at a replay;
///  memory that it did allocate holds NaN until the first replay.
class Tape {
 public:
  void replay() {
    if (log_ != nullptr) log_->asked.emplace_back("replay");
    at::NoGradGuard const no_gradients;
    at::AutoDispatchBelowADInplaceOrView const below_autograd;
    for (Step& step : steps_) {
      torch::jit::Stack stack;
      for (at::IValue const& each : step.arguments) {
        stack.push_back(with_tensors(each, [&](at::Tensor const& t) { return present(t); }));
      }
      step.op.callBoxed(stack);
      for (std::size_t i = 0; i < step.results.size(); ++i) {
        if (step.results[i].defined()) step.results[i].copy_(fresh_in(stack, step.which[i]));
      }
    }
  }

 private:
  friend class Recorder;

  struct Step {
    c10::OperatorHandle op;
    std::vector<at::IValue> arguments;                       ///< foreign tensors are placeholders
    std::vector<at::Tensor> results;                         ///< memory that the operator allocated
    std::vector<std::pair<std::size_t, std::size_t>> which;  ///< where they are in the stack
  };
  /// A tensor that is owned outside of the tape.
  struct Foreign {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    at::TensorOptions options;
    std::vector<std::int64_t> sizes, strides;
    std::int64_t offset;
    std::string used_by;
    at::Tensor placeholder;  ///< keeps its address from being reused
  };

  template <class F>
  static at::IValue with_tensors(at::IValue const& value, F&& f) {
    if (value.isTensor()) return value.toTensor().defined() ? f(value.toTensor()) : value;
    if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (at::Tensor const& each : value.toTensorVector()) list.push_back(f(each));
      return list;
    }
    if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> list;
      for (std::optional<at::Tensor> const& each : value.toOptionalTensorVector()) {
        list.push_back(each && each->defined() ? std::optional<at::Tensor>(f(*each)) : each);
      }
      return list;
    }
    return value;
  }

  static at::Tensor fresh_in(torch::jit::Stack const& stack,
                             std::pair<std::size_t, std::size_t> const& which) {
    at::IValue const& value = stack.at(which.first);
    return value.isTensorList() ? value.toTensorVector().at(which.second) : value.toTensor();
  }

  at::Tensor present(at::Tensor const& recorded) {
    auto const found = foreign_.find(recorded.unsafeGetTensorImpl());
    if (found == foreign_.end()) return recorded;
    Foreign const& what = found->second;
    auto const storage = what.storage.lock();
    TORCH_CHECK(storage.defined(), "replay: memory of ", what.used_by, " was freed, of shape ",
                at::IntArrayRef(what.sizes));
    at::Tensor tensor = at::empty({0}, what.options);
    tensor.set_(c10::Storage(storage), what.offset, what.sizes, what.strides);
    return tensor;
  }

  std::vector<Step> steps_;
  std::map<at::TensorImpl const*, Foreign> foreign_;  // by placeholder
  RecorderLog* log_ = nullptr;
};

class Recorder {
 public:
  using Recording = Tape;

  RecorderLog* log = nullptr;
  std::function<void()> at_capture{};  ///< called before each capture

  static void require(c10::Device) {}
  void begin(c10::Device) { note("begin"); }
  void on_side_stream(std::function<void()> const& body) {
    note("side stream");
    body();
  }
  void forget() { note("forget"); }

  Tape capture(std::vector<at::Generator> const& generators, std::function<void()> const& body) {
    if (at_capture) at_capture();
    note("capture");
    TORCH_CHECK(running() == nullptr, "a capture within a capture");
    install();
    Session session;
    session.tape.log_ = log;
    session.generators = generators;
    session.generators.push_back(at::detail::getDefaultCPUGenerator());
    std::vector<at::Tensor> states;
    for (at::Generator const& each : session.generators) states.push_back(each.get_state());
    auto const undo = [&] {
      running() = nullptr;
      for (auto const& [storage, before] : session.before) {
        std::memcpy(storage->mutable_data(), before.data(), before.size());
      }
      for (std::size_t i = 0; i < states.size(); ++i) session.generators[i].set_state(states[i]);
    };
    running() = &session;
    try {
      c10::impl::IncludeDispatchKeyGuard const recording(key);
      body();
    } catch (...) {
      undo();
      spoil(session.tape);
      note("broken off");
      throw;
    }
    undo();
    spoil(session.tape);
    return std::move(session.tape);
  }

 private:
  static constexpr c10::DispatchKey key = c10::DispatchKey::Fake;  // directly below autograd,
                                                                   // unused

  struct Session {
    Tape tape;
    std::vector<at::Generator> generators;
    std::set<c10::StorageImpl const*> own;                    // kept alive by the tape
    std::map<c10::StorageImpl*, std::vector<char>> before{};  // the previous contents of foreign
                                                              // memory
    std::vector<at::Tensor> keep{};
  };

  // Recorded work is not executed: nothing computed in a capture has a value.
  static void spoil(Tape const& tape) {
    at::NoGradGuard const no_gradients;
    for (Tape::Step const& step : tape.steps_) {
      for (at::Tensor const& each : step.results) {
        if (each.defined() && each.is_floating_point()) each.detach().fill_(std::nan(""));
      }
    }
  }

  static Session*& running() {
    static thread_local Session* session = nullptr;
    return session;
  }

  static void install() {
    static torch::Library const library = [] {
      torch::Library all(torch::Library::IMPL, "_", key, __FILE__, __LINE__);
      all.fallback(torch::CppFunction::makeFromBoxedFunction<&Recorder::call>());
      return all;
    }();
    static_cast<void>(library);
  }

  static void call(c10::OperatorHandle const& op, c10::DispatchKeySet keys,
                   torch::jit::Stack* stack) {
    c10::impl::ExcludeDispatchKeyGuard const off(key);
    auto const rest = keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, key);
    if (running() == nullptr) {
      op.redispatchBoxed(rest, stack);
    } else {
      running_call(*running(), op, rest, stack);
    }
  }

  static c10::StorageImpl* storage_of(at::Tensor const& tensor) {
    return tensor.storage().unsafeGetStorageImpl();
  }

  static void running_call(Session& session, c10::OperatorHandle const& op,
                           c10::DispatchKeySet rest, torch::jit::Stack* stack) {
    c10::FunctionSchema const& schema = op.schema();
    std::string const& name = schema.name();
    for (char const* const waits : {"aten::_local_scalar_dense", "aten::equal", "aten::nonzero"}) {
      TORCH_CHECK(name != waits, "operation not permitted when stream is capturing: ", name);
    }
    std::size_t const count = schema.arguments().size();
    std::size_t const first = stack->size() - count;
    std::set<c10::StorageImpl*> given;
    bool writes = false;
    Tape::Step step{op, {}, {}, {}};
    for (std::size_t i = 0; i < count; ++i) {
      at::IValue const& value = stack->at(first + i);
      auto const* const alias = schema.arguments()[i].alias_info();
      writes = writes || (alias != nullptr && alias->isWrite());
      if (value.isGenerator()) {
        bool known = false;
        for (at::Generator const& each : session.generators) known |= each == value.toGenerator();
        TORCH_CHECK(known, "a generator is not registered with the graph: ", name);
      }
      step.arguments.push_back(Tape::with_tensors(value, [&](at::Tensor const& tensor) {
        given.insert(storage_of(tensor));
        return recorded(session, tensor, name);
      }));
    }
    op.redispatchBoxed(rest, stack);
    bool fresh = false;
    for (std::size_t i = 0; i < stack->size() - first; ++i) {
      at::IValue const& value = stack->at(first + i);
      auto const look = [&](at::Tensor const& tensor, std::size_t at) {
        if (!tensor.defined() || given.contains(storage_of(tensor))) return;
        fresh = true;
        session.own.insert(storage_of(tensor));
        step.results.push_back(tensor.detach());
        step.which.emplace_back(i, at);
      };
      if (value.isTensor()) look(value.toTensor(), 0);
      if (value.isTensorList()) {
        std::size_t at = 0;
        for (at::Tensor const& each : value.toTensorVector()) look(each, at++);
      }
    }
    // Pure views need no replay.
    if (writes || fresh) session.tape.steps_.push_back(std::move(step));
  }

  /// The tape's record of an argument.
  static at::Tensor recorded(Session& session, at::Tensor const& tensor, std::string const& name) {
    c10::StorageImpl* const storage = storage_of(tensor);
    if (session.own.contains(storage)) return tensor.detach();
    // A wrapped host number: a kernel receives its value.
    if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
      at::Tensor copy = tensor.clone();
      copy.unsafeGetTensorImpl()->set_wrapped_number(true);
      session.keep.push_back(copy);
      return copy;
    }
    // The whole storage: native_batch_norm writes its statistics, which its schema hides.
    if (!session.before.contains(storage)) {
      auto const* const bytes = static_cast<char const*>(storage->data());
      session.before.emplace(storage, std::vector<char>(bytes, bytes + storage->nbytes()));
    }
    at::Tensor const placeholder = at::empty({0}, tensor.options().requires_grad(false));
    session.tape.foreign_.emplace(
        placeholder.unsafeGetTensorImpl(),
        Tape::Foreign{c10::weak_intrusive_ptr<c10::StorageImpl>(
                          c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(storage)),
                      tensor.options().requires_grad(false), tensor.sizes().vec(),
                      tensor.strides().vec(), tensor.storage_offset(), name, placeholder});
    return placeholder;
  }

  void note(char const* what) const {
    if (log != nullptr) log->asked.emplace_back(what);
  }
};

}  // namespace frugal_test::support
