// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/container/any.h>
#include <torch/nn/modules/container/any_value.h>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/core/libtorch/acting.hpp>
#include <frugal/core/libtorch/saved_tensors.hpp>
#include <frugal/core/source/batch.hpp>
#include <frugal/error.hpp>

namespace frugal::detail {

template <class T>
inline constexpr bool is_tuple_like = false;
template <class... Ts>
inline constexpr bool is_tuple_like<std::tuple<Ts...>> = true;
template <class A, class B>
inline constexpr bool is_tuple_like<std::pair<A, B>> = true;

template <class T>
inline constexpr bool is_row = false;
template <class T, class Allocator>
inline constexpr bool is_row<std::vector<T, Allocator>> = true;
template <class T, std::size_t N>
inline constexpr bool is_row<std::array<T, N>> = true;
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

template <class T, class Visit>
void each_tensor(T& value, Visit const& visit);

/// Visits the tensors inside an AnyValue: a tensor, a vector of them, or a tuple of two to four.
/// Other contents are copied unchanged.
template <class Visit>
void each_tensor_of_any(torch::nn::AnyValue& value, Visit const& visit) {
  using T = at::Tensor;
  auto const look = [&]<class V>(std::type_identity<V>) {
    V* const found = value.try_get<V>();
    if (found) each_tensor(*found, visit);
    return found != nullptr;
  };
  look(std::type_identity<T>{}) || look(std::type_identity<std::vector<T>>{}) ||
      look(std::type_identity<std::tuple<T, T>>{}) ||
      look(std::type_identity<std::tuple<T, T, T>>{}) ||
      look(std::type_identity<std::tuple<T, T, T, T>>{});
}

/// Calls `visit` on every tensor in a value, including those in tuples, pairs, vectors, arrays and
/// optionals.
template <class T, class Visit>
void each_tensor(T& value, Visit const& visit) {
  using V = std::remove_const_t<T>;
  if constexpr (std::same_as<V, at::Tensor>) {
    visit(value);
  } else if constexpr (std::same_as<V, torch::nn::AnyValue>) {
    each_tensor_of_any(value, visit);
  } else if constexpr (is_tuple_like<V>) {
    std::apply([&](auto&... parts) { (each_tensor(parts, visit), ...); }, value);
  } else if constexpr (is_row<V>) {
    for (auto& part : value) each_tensor(part, visit);
  } else if constexpr (is_optional<V>) {
    if (value) each_tensor(*value, visit);
  }
}

/// The inputs of a function that will be called again. Their tensors are saved like those of an
/// operator, so that saved-tensor hooks apply to them too.
template <class Inputs>
class KeptInputs {
 public:
  explicit KeptInputs(Inputs const& inputs) : rest_(inputs) {
    each_tensor(rest_, [&](at::Tensor& tensor) {
      versions_.push_back(version_of(tensor));
      if (tensor.defined()) devices_.push_back(tensor.device());
      tensors_.emplace_back(tensor, /*is_output=*/false);
      tensor.reset();
    });
  }

  std::vector<c10::Device> const& devices() const { return devices_; }

  /// The restored inputs. Throws LibTorch's error if one was changed in place since.
  Inputs restored() const {
    Inputs inputs = rest_;
    std::size_t next = 0;
    each_tensor(inputs, [&](at::Tensor& tensor) { tensor = tensors_[next++].unpack(); });
    return inputs;
  }

  /// Throws ModuleError if an input was changed in place: it cannot be recomputed from.
  void require_unchanged(Inputs& inputs, std::string const& who) const {
    std::size_t next = 0;
    each_tensor(inputs, [&](at::Tensor& tensor) {
      if (version_of(tensor) == versions_[next++]) return;
      throw ModuleError(
          {.what = who + " changes its input " + shape_text(tensor) + " in place",
           .where = "recompute",
           .why = "backward computes the function again, and its input has changed by then",
           .fix = "Use the out-of-place operator, or begin with a clone(). A module such as ReLU "
                  "with inplace(true) may stand anywhere but at the beginning of a segment."});
    });
  }

 private:
  static std::int64_t version_of(at::Tensor const& tensor) {
    return tensor.defined() && !tensor.is_inference() ? tensor._version() : 0;
  }

  Inputs rest_;  ///< everything except the tensors
  std::vector<torch::autograd::SavedVariable> tensors_;
  std::vector<std::int64_t> versions_;
  std::vector<c10::Device> devices_;
};

/// Nesting depth of recomputed functions, or of segments exempt from it, in this thread. Policies
/// do not segment inside: the second call must be like the first.
inline thread_local int inside_segment = 0;

class [[nodiscard]] Inside {
 public:
  Inside() { ++inside_segment; }
  Inside(Inside const&) = delete;
  Inside& operator=(Inside const&) = delete;
  ~Inside() { --inside_segment; }
};

/// Ends a recomputation once it has saved everything that backward can need. Not a std::exception,
/// so that a catch in the function does not stop it.
struct Enough {};

/// A tensor that an operator of a recomputed function saved; empty until backward needs it.
struct Slot {
  at::Tensor value{};
  std::vector<std::int64_t> sizes;
  at::ScalarType type;
  std::int64_t version;  ///< of a parameter, which must not change between forward and backward
};

/// Replaces buffers by copies for the duration of a recomputation, so that BatchNorm counts a batch
/// once.
class [[nodiscard]] KeepBuffers {
 public:
  explicit KeepBuffers(std::vector<at::Tensor> buffers) : buffers_(std::move(buffers)) {
    for (at::Tensor const& buffer : buffers_) {
      kept_.push_back(buffer.detach());
      buffer.set_data(buffer.detach().clone());
    }
  }
  KeepBuffers(KeepBuffers const&) = delete;
  KeepBuffers& operator=(KeepBuffers const&) = delete;
  ~KeepBuffers() {
    // In reverse: the second entry of a duplicate holds its temporary copy.
    for (std::size_t i = kept_.size(); i-- > 0;) buffers_[i].set_data(kept_[i]);
  }

 private:
  std::vector<at::Tensor> buffers_;
  std::vector<at::Tensor> kept_;
};

/// One call of a function whose activations are not kept. During the first call, each tensor that
/// an operator saves becomes an empty slot. The first slot that backward needs triggers a second
/// call, which fills the slots in order: the graph is that of the first call, only the values come
/// from the second.
class Frame : public std::enable_shared_from_this<Frame> {
 public:
  Frame() = default;
  Frame(Frame const&) = delete;
  Frame& operator=(Frame const&) = delete;
  virtual ~Frame() = default;

  /// Runs the first call, or a part of it.
  template <class Body>
  decltype(auto) record(Body&& body) {
    Recording how(shared_from_this());
    Inside const inside;
    SavedTensorsScope const scope(&how);
    return body();
  }

 private:
  /// Calls the whole function again, on its inputs and with its saved surroundings.
  virtual void call_again() = 0;

  struct Recorded final : SavedTensors::Hooks {
    explicit Recorded(std::shared_ptr<Frame> owner) : frame(std::move(owner)) {}
    void call_pack_hook(at::Tensor const& tensor) override { slot = frame->new_slot(tensor); }
    at::Tensor call_unpack_hook() override { return frame->value_of(*slot); }

    std::shared_ptr<Frame> frame;
    std::shared_ptr<Slot> slot;
  };
  struct Recording final : SavedTensors {
    explicit Recording(std::shared_ptr<Frame> owner) : frame(std::move(owner)) {}
    std::unique_ptr<Hooks> hooks() override { return std::make_unique<Recorded>(frame); }

    std::shared_ptr<Frame> frame;
  };

  // The function may run its own backward pass, so its tensors are kept here as well.
  struct Captured final : SavedTensors::Hooks {
    Captured(Frame& owner, std::size_t& position) : frame(owner), next(position) {}
    void call_pack_hook(at::Tensor const& tensor) override {
      value = tensor.detach();
      frame.fill(next++, tensor);
    }
    at::Tensor call_unpack_hook() override { return value; }

    Frame& frame;
    std::size_t& next;
    at::Tensor value;
  };
  struct Capturing final : SavedTensors {
    explicit Capturing(Frame& owner) : frame(owner) {}
    std::unique_ptr<Hooks> hooks() override { return std::make_unique<Captured>(frame, next); }

    Frame& frame;
    std::size_t next = 0;
  };

  /// Version of a parameter, or of a view of one such as a Linear's transposed weight.
  static std::int64_t version_of(at::Tensor const& tensor);

  std::shared_ptr<Slot> new_slot(at::Tensor const& tensor);

  at::Tensor value_of(Slot& slot);

  void recompute();

  void fill(std::size_t at, at::Tensor const& tensor);

  [[noreturn]] static void refuse(std::string why);

  std::vector<std::weak_ptr<Slot>> slots_;  ///< in the order of saving
  std::recursive_mutex mutex_;
};

/// The global state that a computation depends on, besides its inputs: generator states, autocast,
/// and whose layer hooks act.
class Surroundings {
 public:
  /// Captures the current state, of the CPU and of these devices.
  explicit Surroundings(std::vector<c10::Device> const& devices);

  /// Captures the current state, of the same devices as another one.
  static Surroundings now_like(Surroundings const& other);

  void put_back() const;

 private:
  struct OfDevice {
    c10::Device device;
    at::Generator generator;
    at::Tensor state;
    bool autocast;
    at::ScalarType type;
  };

  void add(c10::Device device);

  std::vector<OfDevice> devices_;
  bool cached_ = at::autocast::is_autocast_cache_enabled();
  void const* acting_ = acting;
};

/// For its lifetime the state is as it was `then`, for a recomputation; afterwards as it was
/// before.
class [[nodiscard]] Within {
 public:
  explicit Within(Surroundings const& then)
      : now_(Surroundings::now_like(then)), recomputed_(std::exchange(recomputing, true)) {
    then.put_back();
    at::autocast::increment_nesting();
  }
  Within(Within const&) = delete;
  Within& operator=(Within const&) = delete;
  ~Within() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    now_.put_back();
    recomputing = recomputed_;
  }

 private:
  Surroundings now_;
  bool recomputed_;
};

using torch::nn::AnyModule;
using torch::nn::AnyValue;
using Arguments = std::vector<AnyValue>;

/// AnyModule takes its arguments one by one; its overload for a vector is private.
AnyValue call_any(AnyModule& module, Arguments arguments);

/// Consecutive members of a Sequential in one forward pass, each applied to the previous result: a
/// frame that grows while it is recorded.
class ChainFrame final : public Frame {
 public:
  explicit ChainFrame(Arguments const& inputs) : inputs_(inputs) {}

  AnyValue add(AnyModule const& module, Arguments arguments);
  void require_unchanged(Arguments& inputs, std::string const& who) const {
    inputs_.require_unchanged(inputs, who);
  }

 private:
  struct Link {
    AnyModule module;
    Surroundings surroundings;
  };

  void call_again() override {
    Arguments arguments = inputs_.restored();
    std::vector<at::Tensor> buffers;
    for (Link const& link : links_) {
      for (at::Tensor& buffer : link.module.ptr()->buffers()) buffers.push_back(std::move(buffer));
    }
    KeepBuffers const keep(std::move(buffers));
    for (Link& link : links_) {
      Within const then(link.surroundings);
      AnyValue result = call_any(link.module, std::move(arguments));
      arguments.clear();
      arguments.push_back(std::move(result));
    }
  }

  KeptInputs<Arguments> inputs_;
  std::vector<Link> links_;
};

}  // namespace frugal::detail

namespace frugal {

namespace detail {

/// A module holder, or a pointer to a module.
template <class P>
concept ModulePointer = requires(P& pointer) {
  requires std::derived_from<std::remove_reference_t<decltype(*pointer)>, torch::nn::Module>;
};

template <class F, class... Inputs>
concept CalledAs =
    std::invocable<F&, Inputs...> ||
    (ModulePointer<F> && requires(F& f, Inputs... inputs) { (*f).forward(std::move(inputs)...); });

/// Calls a function, or the forward of a module.
template <class F, class... Inputs>
decltype(auto) call(F& f, Inputs&&... inputs) {
  if constexpr (std::invocable<F&, Inputs...>) {
    return std::invoke(f, std::forward<Inputs>(inputs)...);
  } else {
    return (*f).forward(std::forward<Inputs>(inputs)...);
  }
}

/// The buffers of the modules in a function, as far as its type exposes them.
template <class F>
std::vector<at::Tensor> buffers_in(F& f) {
  if constexpr (ModulePointer<F>) {
    return (*f).buffers();
  } else if constexpr (requires { f.module_buffers(); }) {
    return f.module_buffers();
  } else {
    return {};
  }
}

template <class F, class... Inputs>
class RecomputedCall final : public Frame {
  using Values = std::tuple<Inputs...>;

 public:
  RecomputedCall(F f, Values const& inputs)
      : f_(std::move(f)), inputs_(inputs), surroundings_(inputs_.devices()) {}

  auto first(Values& inputs) {
    auto result = record([&] { return call_with(Values(inputs)); });
    inputs_.require_unchanged(inputs, "a recomputed function");
    return result;
  }

 private:
  auto call_with(Values inputs) {
    return std::apply([&](Inputs&... each) { return call(f_, std::move(each)...); }, inputs);
  }

  void call_again() override {
    Values inputs = inputs_.restored();
    KeepBuffers const buffers(buffers_in(f_));
    Within const then(surroundings_);
    call_with(std::move(inputs));
  }

  F f_;
  KeptInputs<Values> inputs_;
  Surroundings surroundings_;
};

}  // namespace detail

/// Calls `f(inputs...)` without keeping its activations: backward calls it again to recompute them,
/// with the same generator states and autocast (activation checkpointing). Gradients equal those of
/// the plain call, bit for bit. With gradients disabled, this is the plain call.
///
/// f       a function of tensors, tuples, vectors and optionals of tensors, and other values, that
///         returns any of these; or a module holder. It is copied and called again during backward:
///         capture by value, or keep alive everything that it refers to.
/// Errors  ModuleError if f changes an input in place, or behaves differently the second time.
///         Exceptions of f leave forward or backward.
/// Source  Chen et al., "Training deep nets with sublinear memory cost" (2016); non-reentrant as in
///         torch.utils.checkpoint(use_reentrant=False).
template <class F, class... Inputs>
auto recompute(F f, Inputs... inputs) {
  static_assert(detail::CalledAs<F, Inputs...>,
                "frugal: the function given to recompute cannot be called with these inputs. Let "
                "it take them by value or by const&, in the order of the call.");
  if constexpr (detail::CalledAs<F, Inputs...>) {
    if (!at::GradMode::is_enabled()) return detail::call(f, std::move(inputs)...);
    std::tuple<Inputs...> values(std::move(inputs)...);
    auto const frame = std::make_shared<detail::RecomputedCall<F, Inputs...>>(std::move(f), values);
    return frame->first(values);
  }
}

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/core/libtorch/recompute/frame.ipp>
#endif
