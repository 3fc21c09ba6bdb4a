// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, J teachers, C classes, T positions, F features, A heads, ... whatever one sample has.
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/init.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/core/compose/diagnostic.hpp>
#include <frugal/core/compose/rational.hpp>
#include <frugal/core/libtorch/interception.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/run/binary_cross_entropy.hpp>
#include <frugal/core/run/loss.hpp>
#include <frugal/core/run/objective.hpp>
#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/labels.hpp>
#include <frugal/model/distill/teacher.hpp>
#include <frugal/policy/kinds.hpp>

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

inline constexpr char const* projection_name = "distill_projection";

/// What a distillation is given.
struct DistillSettings {
  std::vector<Teacher> teachers{};
  double alpha = 0.5;
  double temperature = 1;  ///< of Distill<Temperature<T>>
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

  DistillSettings settings{};
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
  static Lesson of(torch::nn::Module& student, DistillSettings settings, bool adapts);

 private:
  LessonPlan(torch::nn::Module& student, DistillSettings settings) : student_(student) {
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

/// What a Distill and its objective share: a lesson for each student, while a fit trains it. Copies of a
/// Distill share it, and so their students may be trained in several threads.
class Lessons {
 public:
  std::shared_ptr<Lesson const> begin(torch::nn::Module& student, DistillSettings settings,
                                      bool adapts);

  /// Forgets a lesson, unless another one has begun with that student since: it holds weights of the
  /// student, which would live as long as the Distill does.
  void end(torch::nn::Module const& student, Lesson const* lesson);

  /// Null if none has begun.
  std::shared_ptr<Lesson const> of(torch::nn::Module const& student) const;

 private:
  mutable std::mutex mutex_;
  std::map<torch::nn::Module const*, std::shared_ptr<Lesson const>> lessons_;
};

}  // namespace detail
}  // namespace frugal

// The terms of a distillation loss. Each is computed in FP32 at least.
namespace frugal::detail {

/// The mean of values over the places at which a bool mask is true; all of them without a mask. The
/// mask has the values' first dimensions. No host sync.
at::Tensor mean_where(at::Tensor const& values, at::Tensor const& mask);

/// Refuses logits of which a softmax would be meaningless, and a teacher's of another shape.
void require_logits(at::Tensor const& student, at::Tensor const& teacher);

/// KL(teacher || student) [B, ...] of each position, at a temperature. `log_student` is the
/// student's log-softmax at that temperature, [B, C, ...].
at::Tensor divergence(at::Tensor const& log_student, at::Tensor const& teacher, double temperature);

/// The same over K + 1 outcomes: K classes [B, K, ...], and all others as one. `kept`
/// [B, K + 1, ...] are the teacher's log-probabilities at the student's temperature, that of the
/// others last.
at::Tensor divergence_of_top(at::Tensor const& log_student, at::Tensor const& kept,
                             at::Tensor const& classes);

/// The squared error [B, ...] of each position, for outputs that are no logits; of logits
/// [B, C, ...] with a mask of positions, the mean over the classes.
at::Tensor squared_error(at::Tensor const& student, at::Tensor const& teacher);

[[noreturn]] void refuse_states(char const* what, at::Tensor const& student,
                                at::Tensor const& teacher, std::string const& pair);

/// The mean squared error of hidden states, the student's after a projection [teacher's width,
/// student's width] if one is defined. `channels`: dimension 1 is the width, and not the last.
/// `mask_BT` leaves out positions of states [B, T, ...].
at::Tensor hidden_term(at::Tensor student, at::Tensor teacher, at::Tensor const& projection,
                       bool channels, at::Tensor const& mask_BT, std::string const& pair);

/// Attention transfer between convolutions [B, C, H, W]: the mean squared difference of the maps
/// [B, H W], each the mean over the channels of the squared outputs, of length 1.
at::Tensor spatial_attention_term(at::Tensor const& student, at::Tensor const& teacher,
                                  std::string const& pair);

/// Log-probabilities [B, A, T, T] of self-attention, from queries and keys [B, T, F].
at::Tensor attention_map(at::Tensor const& query, at::Tensor const& key, std::int64_t heads,
                         bool causal, at::Tensor const& mask_BT);

/// KL(teacher || student) of the attention of each query in each head, its mean.
at::Tensor self_attention_term(at::Tensor const& student_BATT, at::Tensor const& teacher_BATT,
                               at::Tensor const& mask_BT);

}  // namespace frugal::detail

namespace frugal {

/// SettingsError for a temperature that an option of Distill cannot have.
namespace detail {
void require_temperature(double temperature, bool softens);
}  // namespace detail

/// Option of Distill: logits of classes, softened by a temperature: `Temperature<4>`,
/// `Temperature<2.5>`. The term is T^2 KL(teacher || student).
template <Rational T>
struct Temperature {
  static constexpr double value = T.value();
  static_assert(value > 0, "frugal: Temperature<T>: T must be above 0. Write Temperature<4>.");
};

/// Option of Distill: the mean squared error of the outputs, of a regression or of logits.
struct SquaredError {};

namespace detail {

template <class Option>
inline constexpr bool is_temperature = false;
template <Rational T>
inline constexpr bool is_temperature<Temperature<T>> = true;

/// Which positions of outputs count.
struct CountedPositions {
  at::Tensor mask{};       ///< bool; undefined if all of them do
  bool of_labels = false;  ///< it is [B, ...] for outputs [B, C, ...]
};

template <class B>
CountedPositions counted_positions(B const& batch, at::Tensor const& output) {
  if constexpr (TensorTarget<B>) {
    at::Tensor const& target = batch_target(batch);
    bool const labels = target.defined() && !target.is_floating_point() &&
                        target.scalar_type() != at::kBool && output.dim() == target.dim() + 1;
    if (labels) return {target.ne(ignored_label), true};
  }
  if constexpr (CountsLabels<B> && requires { batch.mask.dim(), batch.target_padded; }) {
    if (batch.target_padded) return {batch.mask, false};
  }
  return {};
}

/// A bool mask [B, T] of the positions that are a sample's own; undefined if the batch has none.
template <class B>
at::Tensor mask_of_positions([[maybe_unused]] B const& batch) {
  if constexpr (requires { batch.mask.dim(); }) {
    if (batch.mask.defined() && batch.mask.dim() == 2 && batch.mask.scalar_type() == at::kBool) {
      return batch.mask;
    }
  }
  return {};
}

void require_taught_by(TeacherOutputs const& cached, Lesson const& lesson, double temperature);

[[noreturn]] void refuse_no_output();

[[noreturn]] void refuse_no_teacher();

}  // namespace detail

/// Another objective, and what teachers say: Distill::objective makes it. In evaluation mode it is
/// that objective alone, so that validations compare with those of other runs, and cost as much.
template <class Option, class Objective>
struct DistillObjective {
  static_assert(
      !detail::is_temperature<Option> ||
          !(detail::OfErrors<Objective> || std::same_as<Objective, BinaryCrossEntropy>),
      "frugal: Distill<Temperature<T>> compares logits of classes, and this objective has "
      "none. Write Distill<SquaredError>.");

  using trained_with = kinds::distill;
  FRUGAL_DIAGNOSTIC(
      trained_without,
      "frugal: this objective is that of a Distill which the recipe lacks, so a "
      "resume could go on with another teacher. Give the trainer the Distill as well: "
      "Trainer{net, distill.objective(CrossEntropy{}), Settings{}, ..., distill}.");

  Objective objective;
  detail::DistillSettings settings;  ///< until the policy says others
  std::shared_ptr<detail::Lessons> lessons;

  template <class Module, class B>
    requires ObjectiveFor<Objective, Module, B>
  Loss operator()(Module& module, B const& batch) {
    torch::nn::Module& student = base_module(module);
    if (!student.is_training()) return detail::as_loss(objective(module, batch));
    std::shared_ptr<detail::Lesson const> lesson = lessons->of(student);
    if (!lesson) lesson = lessons->begin(student, settings, /*adapts=*/false);

    // While the layers of student and teachers are watched.
    detail::LayerOutputs const seen(lesson->layers);
    std::vector<Said> const said = ask(*lesson, batch);
    Loss loss = detail::as_loss(objective(module, batch));

    double const alpha = lesson->settings.alpha;
    at::Tensor const task = loss.value;
    if (alpha > 0) {
      if (!loss.output.defined()) detail::refuse_no_output();
      at::Tensor const taught = term(said, loss.output, batch, temperature_of(*lesson));
      loss.scalars.add({"distill_outputs", taught});
      loss.value = alpha == 1 ? taught : alpha * taught + (1 - alpha) * task;
    }
    loss.scalars.add({"task", task});
    add_layers(*lesson, seen, batch, loss);
    return loss;
  }

 private:
  static double temperature_of(detail::Lesson const& lesson) {
    return detail::is_temperature<Option> ? lesson.settings.temperature : 0;
  }

  /// What one teacher says, and its share.
  struct Said {
    at::Tensor output, classes{};
    double share = 1;
  };

  template <class B>
  static std::vector<Said> ask(detail::Lesson const& lesson, B const& batch) {
    std::vector<Said> said;
    double sum = 0;
    if constexpr (detail::is_taught<B>) {
      TeacherOutputs const& by = *batch.taught_by;
      detail::require_taught_by(by, lesson, temperature_of(lesson));
      for (std::size_t j = 0; j < by.weights.size(); ++j) {
        auto const row = static_cast<std::int64_t>(j);
        said.push_back({batch.teacher.select(1, row),
                        by.top_k == 0 ? at::Tensor() : batch.classes.select(1, row),
                        by.weights[j]});
      }
    } else {
      at::Device device = at::kCPU;
      bool found = false;
      batch_tensors(batch, [&](at::Tensor const& tensor) {
        if (!found && tensor.defined()) device = tensor.device(), found = true;
      });
      for (Teacher const& teacher : lesson.settings.teachers) {
        said.push_back({teacher(batch, device), {}, teacher.options().weight});
      }
    }
    if (said.empty()) detail::refuse_no_teacher();
    for (Said const& each : said) sum += each.share;
    for (Said& each : said) each.share /= sum;
    return said;
  }

  template <class B>
  static at::Tensor term(std::vector<Said> const& said, at::Tensor const& output, B const& batch,
                         [[maybe_unused]] double temperature) {
    detail::CountedPositions const counted = detail::counted_positions(batch, output);
    at::Tensor log_student;
    if constexpr (detail::is_temperature<Option>) {
      detail::require_logits(output, output);
      log_student = at::log_softmax(detail::at_least_float(output) / temperature, 1);
    }
    at::Tensor sum;
    for (Said const& each : said) {
      at::Tensor values;
      if constexpr (!detail::is_temperature<Option>) {
        values = detail::squared_error(output, each.output);
        if (counted.of_labels) values = values.mean(1);
      } else if (each.classes.defined()) {
        values = detail::divergence_of_top(log_student, each.output, each.classes);
      } else {
        detail::require_logits(output, each.output);
        values = detail::divergence(log_student, each.output, temperature);
      }
      at::Tensor const mean = detail::mean_where(values, counted.mask);
      sum = sum.defined() ? sum + each.share * mean : (each.share == 1 ? mean : each.share * mean);
    }
    return detail::is_temperature<Option> ? temperature * temperature * sum : sum;
  }

  template <class B>
  static void add_layers(detail::Lesson const& lesson, detail::LayerOutputs const& seen,
                         B const& batch, Loss& loss) {
    if (lesson.layers.empty()) return;
    at::Tensor const mask = detail::mask_of_positions(batch);
    auto const add = [&](std::string const& name, double weight, at::Tensor const& value) {
      loss.scalars.add({name, value});
      loss.value = loss.value + weight * value;
    };
    for (std::size_t i = 0; i < lesson.hidden.size(); ++i) {
      detail::Lesson::Pair const& pair = lesson.hidden[i];
      HiddenStates const& of = lesson.settings.hidden[i];
      bool const channels = lesson.layers[pair.student].op == LayerCall::Operator::conv2d &&
                            lesson.layers[pair.teacher].op == LayerCall::Operator::conv2d;
      add("distill_hidden_" + std::to_string(i), of.weight,
          detail::hidden_term(seen.of(pair.student), seen.of(pair.teacher), pair.projection,
                              channels, mask, of.student + " and " + of.teacher));
    }
    for (std::size_t i = 0; i < lesson.attention.size(); ++i) {
      detail::Lesson::Attention const& layers = lesson.attention[i];
      AttentionMaps const& of = lesson.settings.attention[i];
      std::string const pair = of.student.query + " and " + of.teacher.query;
      auto const map = [&](std::size_t query, std::size_t key) {
        return detail::attention_map(seen.of(query), seen.of(key), of.heads, of.causal, mask);
      };
      add("distill_attention_" + std::to_string(i), of.weight,
          of.student.key.empty()
              ? detail::spatial_attention_term(seen.of(layers.student_query),
                                               seen.of(layers.teacher_query), pair)
              : detail::self_attention_term(map(layers.student_query, layers.student_key),
                                            map(layers.teacher_query, layers.teacher_key), mask));
    }
  }
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/model/distill/objective.ipp>
#endif
