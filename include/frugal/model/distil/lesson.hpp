// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/init.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <frugal/core/libtorch/interception.hpp>
#include <frugal/model/distil/teacher.hpp>

namespace frugal::detail {

/// A layer whose outputs are looked at.
struct WatchedLayer {
  std::string name;
  at::Tensor weight;
  LayerCall::Operator op = LayerCall::Operator::linear;
  std::int64_t width = 0;  ///< of its output: features, or channels of a convolution
};

/// The layer of this name, or the one with the weight of this name. SettingsError if there is none
/// of a kind that can be intercepted; `whose` is what the error calls the module.
WatchedLayer watched_layer(torch::nn::Module const& module, std::string const& name,
                           std::string const& whose);

/// While it lives, keeps what some layers give in this thread. What a layer gives is what a hook
/// in PyTorch gets: an operator that writes into it afterwards, such as a ReLU in place, changes it.
class LayerOutputs {
 public:
  explicit LayerOutputs(std::vector<WatchedLayer> const& layers);
  LayerOutputs(LayerOutputs const&) = delete;
  LayerOutputs& operator=(LayerOutputs const&) = delete;
  ~LayerOutputs() {
    for (std::size_t i = 0; i < hooks_.size(); ++i) release((*layers_)[i].weight, *hooks_[i]);
  }

  /// ModuleError if the layer was not called, or more than once: which call would be meant?
  at::Tensor const& of(std::size_t layer) const;

 private:
  struct Hook final : LayerHook {
    explicit Hook(LayerCall::Operator which) : op(which) {}
    Place place() const override { return Place::observe; }
    at::Tensor call(LayerCall const& call, LayerRest const& rest) override {
      at::Tensor made = rest(call);
      // A weight may be tied to a layer of another kind, and a module shared by two threads.
      if (call.op == op && std::this_thread::get_id() == thread) {
        output = made;
        ++calls;
      }
      return made;
    }

    LayerCall::Operator op;
    std::thread::id thread = std::this_thread::get_id();
    at::Tensor output{};
    int calls = 0;
  };

  std::vector<WatchedLayer> const* layers_;
  std::vector<std::shared_ptr<Hook>> hooks_;
};

}  // namespace frugal::detail

namespace frugal {

/// Two layers whose outputs shall agree, in the mean of their squared error. Where their widths
/// differ, the student's goes through a projection that is trained with the student.
struct HiddenStates {
  std::string student;     ///< name of a layer
  std::string teacher;     ///< name of a layer
  double weight = 1;       ///< of the term in the loss
  std::size_t number = 0;  ///< which teacher
};

/// Attention maps that shall agree. Of two convolutions: where the squared outputs are large
/// (attention transfer). Of self-attention: the probabilities, from the layers that make queries
/// and keys, [B, T, F] each.
struct AttentionMaps {
  /// A convolution, or the layer of the queries and that of the keys.
  struct Layers {
    std::string query, key{};
  };
  Layers student, teacher;
  double weight = 1;       ///< of the term in the loss
  std::size_t number = 0;  ///< which teacher
  /// Heads into which queries and keys are split, in both: those of the layers where they have the
  /// same number, or any other that divides both widths (relation heads).
  std::int64_t heads = 1;
  bool causal = false;  ///< a position attends to those before it, and to itself
};

namespace detail {

inline constexpr char const* projection_name = "distil_projection";

/// What a distillation is given.
struct DistilSettings {
  std::vector<Teacher> teachers{};
  double alpha = 0.5;
  std::vector<HiddenStates> hidden{};
  std::vector<AttentionMaps> attention{};

  std::string identity() const;
};

/// A distillation of one student: its settings, and the layers that they name.
struct Lesson {
  struct Pair {
    std::size_t student = 0, teacher = 0;  ///< in `layers`
    at::Tensor projection{};               ///< [teacher's width, student's width], or undefined
  };
  struct Attention {
    std::size_t student_query = 0, student_key = 0, teacher_query = 0, teacher_key = 0;
  };

  DistilSettings settings{};
  std::string identity{};  ///< of the teachers; empty until it is asked for
  std::vector<WatchedLayer> layers{};
  std::vector<Pair> hidden{};
  std::vector<Attention> attention{};
};

/// Makes a lesson of settings and a student.
class LessonPlan {
 public:
  /// `adapts`: registers the projection that the student lacks. Otherwise that is an error, since
  /// parameters that come after an optimizer has begun would not be trained.
  static Lesson of(torch::nn::Module& student, DistilSettings settings, bool adapts);

 private:
  LessonPlan(torch::nn::Module& student, DistilSettings settings) : student_(student) {
    lesson_.settings = std::move(settings);
  }

  [[noreturn]] static void refuse(std::string what, std::string where, std::string why,
                                  std::string fix);

  void check() const;

  std::size_t watch(torch::nn::Module const& module, std::string const& name,
                    std::string const& whose);

  void find_layers();

  /// The parameters are those of a child module, so that they are trained, saved and moved with the
  /// student. They are plain parameters, which no policy takes for a layer.
  void project(bool adapts);

  Lesson::Pair& pair_of(std::string const& name) {
    return lesson_.hidden[static_cast<std::size_t>(std::stoul(name))];
  }

  [[noreturn]] static void refuse_projection(std::string why);

  torch::nn::Module& student_;
  Lesson lesson_;
};

/// What a Distil and its objective share: a lesson for each student, while a fit trains it. Copies of a
/// Distil share it, and so their students may be trained in several threads.
class Lessons {
 public:
  std::shared_ptr<Lesson const> begin(torch::nn::Module& student, DistilSettings settings,
                                      bool adapts);

  /// Forgets a lesson, unless another one has begun with that student since: it holds weights of the
  /// student, which would live as long as the Distil does.
  void end(torch::nn::Module const& student, Lesson const* lesson);

  /// Null if none has begun.
  std::shared_ptr<Lesson const> of(torch::nn::Module const& student) const;

 private:
  mutable std::mutex mutex_;
  std::map<torch::nn::Module const*, std::shared_ptr<Lesson const>> lessons_;
};

}  // namespace detail
}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/model/distil/lesson.ipp>
#endif
