// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, J teachers, C classes, K kept ones, ... whatever one sample has.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/fields.hpp>
#include <frugal/data/fields_batch.hpp>

namespace frugal {

/// How a teacher is asked.
struct TeacherOptions {
  double weight = 1;  ///< its share among several teachers
  /// Autocast to this type. Nothing: the teacher computes in the type of its weights, whatever the
  /// precision of the run.
  std::optional<at::ScalarType> autocast{};
};

namespace detail {

/// A batch whose type only the teacher's forward function knows.
struct AnyBatch {
  std::type_info const& type;
  void const* batch;
  at::Tensor data;  ///< undefined unless the batch's data is one tensor
};

template <class B>
AnyBatch any_batch(B const& batch) {
  if constexpr (HasData<B>) {
    if constexpr (IsTensor<std::remove_cvref_t<decltype(batch_data(batch))>>) {
      return {typeid(B), &batch, batch_data(batch)};
    }
  }
  return {typeid(B), &batch, {}};
}

/// The batch that a function object `(module, batch) -> logits` takes, if it is no template.
template <class Call>
struct second_argument {};
template <class R, class F, class M, class B>
struct second_argument<R (F::*)(M, B) const> {
  using type = std::remove_cvref_t<B>;
};
template <class R, class F, class M, class B>
struct second_argument<R (F::*)(M, B)> : second_argument<R (F::*)(M, B) const> {};

struct ForwardOfTensor {
  template <class M>
  at::Tensor operator()(M& module, at::Tensor const& data) const {
    return forward(module, data);
  }
};

}  // namespace detail

/// A trained module that others learn from: any module or holder, with what runs it on a batch. It
/// is asked in evaluation mode, without gradients, in its own precision, on the batch's device,
/// where it is moved. Its modes are put back after each question. Copies share the module.
///
///     Teacher(big)                                          // forward(batch.data)
///     Teacher(big, [](Bert& bert, Tokens const& batch) {    // any batch
///       return bert->forward(batch.ids, batch.mask);
///     })
///
/// Errors  SettingsError for a weight that is not above 0; ModuleError for an empty holder; when
///         asked, DataError for a batch that the function does not take.
class Teacher {
 public:
  template <class M>
    requires(!std::same_as<M, Teacher>)
  explicit Teacher(M module, TeacherOptions options = {})
      : Teacher(std::move(module), detail::ForwardOfTensor{}, options) {}

  template <class M, class F>
    requires(!std::same_as<F, TeacherOptions>)
  Teacher(M module, F forward, TeacherOptions options = {}) : options_(options) {
    auto held = std::make_shared<M>(std::move(module));
    root_ = &base_module(*held);
    function_ = typeid(F).name();
    ask_ = [held, call = std::move(forward)](detail::AnyBatch const& batch,
                                             std::optional<at::ScalarType> type) -> at::Tensor {
      if constexpr (requires {
                      typename detail::second_argument<decltype(&F::operator())>::type;
                    }) {
        using B = typename detail::second_argument<decltype(&F::operator())>::type;
        if constexpr (!std::same_as<B, at::Tensor>) {
          if (batch.type != typeid(B)) refuse_batch(batch, typeid(B));
          return call(*held, *static_cast<B const*>(batch.batch));
        }
      }
      if constexpr (requires(at::Tensor const& data) {
                      { call(*held, data) } -> std::convertible_to<at::Tensor>;
                    }) {
        if (!batch.data.defined()) refuse_batch(batch, typeid(at::Tensor));
        bool const other = type && batch.data.is_floating_point();
        return call(*held, other ? batch.data.to(*type) : batch.data);
      } else {
        static_assert(
            requires { typename detail::second_argument<decltype(&F::operator())>::type; },
            "frugal: a Teacher's second argument is called with (module, batch), or with "
            "(module, data), and returns the logits. Write `[](Net& net, Batch const& "
            "batch) { return net->forward(batch.data); }`, with the types of your module "
            "and batch in place of auto.");
        return {};
      }
    };
    begin();
  }

  /// The logits [B, C, ...] of a batch, without a graph.
  template <class B>
  at::Tensor operator()(B const& batch, at::Device device) const {
    return ask(detail::any_batch(batch), device);
  }

  torch::nn::Module& module() const { return *root_; }
  TeacherOptions const& options() const { return options_; }

  /// Whose outputs these are: see module_identity(). The weight among several is not part of it.
  std::string identity() const;

  /// The type of the function that runs it, as the compiler calls it. Part of a cache's key, and not
  /// of the identity: another program may resume the run.
  std::string const& function() const { return function_; }

 private:
  void begin();

  at::Tensor ask(detail::AnyBatch const& batch, at::Device device) const;

  [[noreturn]] static void refuse_batch(detail::AnyBatch const& batch,
                                        std::type_info const& wanted);

  TeacherOptions options_;
  std::string function_{};
  torch::nn::Module* root_ = nullptr;  ///< owned by what is in ask_
  at::Tensor probe_{};                 ///< says where the module is, and of which type
  /// With the type that data are converted to.
  std::function<at::Tensor(detail::AnyBatch const&, std::optional<at::ScalarType>)> ask_{};
};

/// Whose outputs a cache has, and what of them.
struct TeacherOutputs {
  std::string identity{};         ///< of all teachers
  std::vector<double> weights{};  ///< of each
  std::int64_t top_k = 0;         ///< 0: all outputs
  double temperature = 1;         ///< of the top K
};

/// A batch with what its teachers said of it. It is a batch of the type that it was before, with
/// two more tensors, so that objectives and metrics take it as they took that one.
template <class B>
struct TaughtBatch : B {
  /// [B, J, C, ...]; of the top K log-probabilities [B, J, K + 1, ...], that of all others last.
  at::Tensor teacher{};
  at::Tensor classes{};  ///< [B, J, K, ...] int32; undefined where all outputs are kept
  std::shared_ptr<TeacherOutputs const> taught_by{};

  B& untaught() { return *this; }
  B const& untaught() const { return *this; }

  /// "teacher", "classes", or a field that the batch had before.
  at::Tensor const& field(std::string const& name) const {
    if (name == "teacher") return teacher;
    if (name == "classes" && classes.defined()) return classes;
    if constexpr (requires { untaught().field(name); }) {
      return untaught().field(name);
    } else {
      return detail::field_in({{"teacher", teacher}}, name);  // throws
    }
  }

  void each_tensor(auto&& f) { f(untaught(), teacher, classes); }
};

template <class B>
struct batch_traits<TaughtBatch<B>> {
  static std::int64_t samples(TaughtBatch<B> const& batch) {
    return batch_samples(batch.untaught());
  }
  static std::int64_t tokens(TaughtBatch<B> const& batch) { return batch_tokens(batch.untaught()); }
  static TaughtBatch<B> narrow(TaughtBatch<B> const& batch, std::int64_t begin, std::int64_t count)
    requires Splittable<B>
  {
    auto const part = [&](at::Tensor const& all) {
      return all.defined() ? all.narrow(0, begin, count) : all;
    };
    return {batch_narrow(batch.untaught(), begin, count), part(batch.teacher), part(batch.classes),
            batch.taught_by};
  }
};

namespace detail {

template <class B>
inline constexpr bool is_taught = false;
template <class B>
inline constexpr bool is_taught<TaughtBatch<B>> = true;

/// Adds a teacher's outputs to a batch. A pair, tuple or list of data and target becomes a Batch.
template <class B>
auto taught(B batch, at::Tensor teacher, at::Tensor classes,
            std::shared_ptr<TeacherOutputs const> taught_by) {
  constexpr bool both = [] {
    if constexpr (HasData<B> && HasTarget<B>) {
      return IsTensor<std::remove_cvref_t<decltype(batch_data(std::declval<B&>()))>> &&
             IsTensor<std::remove_cvref_t<decltype(batch_target(std::declval<B&>()))>>;
    } else {
      return false;
    }
  }();
  if constexpr (DataMember<B> && !std::is_final_v<B>) {
    return TaughtBatch<B>{std::move(batch), std::move(teacher), std::move(classes),
                          std::move(taught_by)};
  } else {
    static_assert(both,
                  "frugal: CachedTeacher cannot add the teacher's outputs to this batch. Give a "
                  "collate function that makes a Batch, a PaddedBatch, or a struct of your own "
                  "with a member `data`.");
    return TaughtBatch<Batch>{{batch_data(batch), batch_target(batch)},
                              std::move(teacher),
                              std::move(classes),
                              std::move(taught_by)};
  }
}

}  // namespace detail
}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/model/distill/teacher.ipp>
#endif
