// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/distil/objective.hpp>

#include <frugal/core/run/objective.hpp>
#include <frugal/core/source/shape_text.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <cmath>
#include <limits>

namespace frugal::detail {

FRUGAL_INLINE at::Tensor mean_where(at::Tensor const& values, at::Tensor const& mask) {
  if (!mask.defined()) return values.mean();
  at::Tensor whole = mask;
  while (whole.dim() < values.dim()) whole = whole.unsqueeze(-1);
  at::Tensor const count = mask.sum().clamp_min(1);
  std::int64_t each = 1;
  for (std::int64_t d = mask.dim(); d < values.dim(); ++d) each *= values.size(d);
  return at::where(whole, values, at::Scalar(0)).sum() / (count * each);
}

FRUGAL_INLINE void require_logits(at::Tensor const& student, at::Tensor const& teacher) {
  bool const classes = student.dim() >= 2 && student.size(1) >= 2;
  if (classes && student.sizes() == teacher.sizes()) return;
  throw ShapeError(
      {.what = classes ? "the student's logits do not fit the teacher's" : "there are no classes",
       .where = "Distil",
       .why = "student " + shape_text(student) + ", teacher " + shape_text(teacher) +
              "; classes are dimension 1, and there are two or more",
       .fix = classes ? "Give both the same classes."
                      : "Use Distil<SquaredError> for outputs that are no logits of classes."});
}

FRUGAL_INLINE at::Tensor divergence(at::Tensor const& log_student, at::Tensor const& teacher,
                                    double temperature) {
  at::Tensor const target = at::softmax(at_least_float(teacher) / temperature, 1);
  return at::kl_div(log_student, target, at::Reduction::None).sum(1);
}

FRUGAL_INLINE at::Tensor divergence_of_top(at::Tensor const& log_student, at::Tensor const& kept,
                                           at::Tensor const& classes) {
  at::Tensor const index = classes.to(at::kLong);
  at::Tensor const others = log_student.scatter(1, index, -std::numeric_limits<double>::infinity())
                                .logsumexp({1}, /*keepdim=*/true);
  at::Tensor const outcomes = at::cat({log_student.gather(1, index), others}, 1);
  // Sixteen bits have rounded them: the sum is 1 again.
  at::Tensor const target = at::softmax(at_least_float(kept), 1);
  return at::kl_div(outcomes, target, at::Reduction::None).sum(1);
}

FRUGAL_INLINE at::Tensor squared_error(at::Tensor const& student, at::Tensor const& teacher) {
  require_one_shape(student, teacher, "Distil");
  return at::mse_loss(at_least_float(student), at_least_float(teacher), at::Reduction::None);
}

FRUGAL_INLINE void refuse_states(char const* what, at::Tensor const& student,
                                 at::Tensor const& teacher, std::string const& pair) {
  throw ShapeError({.what = std::string("the ") + what + " of student and teacher do not fit",
                    .where = "Distil, " + pair,
                    .why = "student " + shape_text(student) + ", teacher " + shape_text(teacher),
                    .fix = "Name two layers whose outputs differ in their width alone."});
}

FRUGAL_INLINE at::Tensor hidden_term(at::Tensor student, at::Tensor teacher,
                                     at::Tensor const& projection, bool channels,
                                     at::Tensor const& mask_BT, std::string const& pair) {
  if (channels) {
    student = student.movedim(1, -1);
    teacher = teacher.movedim(1, -1);
  }
  if (projection.defined()) student = at::linear(student.to(projection.scalar_type()), projection);
  if (student.sizes() != teacher.sizes()) refuse_states("hidden states", student, teacher, pair);
  bool const positions = mask_BT.defined() && !channels && student.dim() >= 3 &&
                         student.size(0) == mask_BT.size(0) && student.size(1) == mask_BT.size(1);
  at::Tensor const errors =
      at::mse_loss(at_least_float(student), at_least_float(teacher), at::Reduction::None);
  return mean_where(errors, positions ? mask_BT : at::Tensor());
}

FRUGAL_INLINE at::Tensor spatial_attention_term(at::Tensor const& student,
                                                at::Tensor const& teacher,
                                                std::string const& pair) {
  if (student.dim() != 4 || teacher.dim() != 4 ||
      student.sizes().slice(2) != teacher.sizes().slice(2)) {
    refuse_states("attention maps", student, teacher, pair);
  }
  auto const map = [](at::Tensor const& output) {
    at::Tensor const flat = at_least_float(output).pow(2).mean(1).flatten(1);
    return flat / flat.norm(2, {1}, /*keepdim=*/true).clamp_min(1e-12);
  };
  return (map(student) - map(teacher)).pow(2).mean();
}

FRUGAL_INLINE at::Tensor attention_map(at::Tensor const& query, at::Tensor const& key,
                                       std::int64_t heads, bool causal, at::Tensor const& mask_BT) {
  auto const split = [&](at::Tensor const& rows) {
    return at_least_float(rows)
        .reshape({rows.size(0), rows.size(1), heads, rows.size(2) / heads})
        .transpose(1, 2);
  };
  double const scale = std::sqrt(static_cast<double>(query.size(2) / heads));
  at::Tensor scores = split(query).matmul(split(key).transpose(2, 3)) / scale;
  // Not -infinity: a row without any key would be NaN, and so its gradient.
  constexpr double none = -1e30;
  if (mask_BT.defined()) {
    scores = scores.masked_fill(mask_BT.logical_not().unsqueeze(1).unsqueeze(1), none);
  }
  if (causal) {
    at::Tensor const later =
        at::ones({query.size(1), key.size(1)}, scores.options().dtype(at::kBool)).triu(1);
    scores = scores.masked_fill(later, none);
  }
  return at::log_softmax(scores, -1);
}

FRUGAL_INLINE at::Tensor self_attention_term(at::Tensor const& student_BATT,
                                             at::Tensor const& teacher_BATT,
                                             at::Tensor const& mask_BT) {
  at::Tensor const each_BAT =
      at::kl_div(student_BATT, teacher_BATT, at::Reduction::None, /*log_target=*/true).sum(-1);
  return mean_where(each_BAT.transpose(1, 2), mask_BT);
}

FRUGAL_INLINE void require_taught_by(TeacherOutputs const& cached, Lesson const& lesson,
                                     double temperature) {
  auto const refuse = [](std::string what, std::string why, std::string fix) {
    throw SettingsError({.what = std::move(what),
                         .where = "a batch with cached outputs",
                         .why = std::move(why),
                         .fix = std::move(fix)});
  };
  if (!lesson.layers.empty()) {
    refuse("Distil compares layers, and a cache has none", "it has the teacher's logits alone",
           "Remove Distil::hidden and Distil::attention, or train without the cache.");
  }
  if (!lesson.settings.teachers.empty() && lesson.identity != cached.identity) {
    refuse("the cache is not of Distil's teachers",
           "it is of " + cached.identity + ", and Distil has " + lesson.identity,
           "Make the cache of these teachers.");
  }
  if (cached.top_k == 0) return;
  if (temperature == 0) {
    refuse("Distil<SquaredError> needs all outputs",
           "the cache has the largest " + std::to_string(cached.top_k),
           "Set TeacherCacheSettings::top_k to 0.");
  }
  if (temperature != cached.temperature) {
    refuse("the cache is of another temperature",
           "it is " + std::to_string(cached.temperature) + " there, and Distil's is " +
               std::to_string(temperature),
           "Make the cache for this Distil: what all other classes have together depends on it.");
  }
}

FRUGAL_INLINE void refuse_no_output() {
  throw ModuleError({.what = "the objective does not say what the student predicted",
                     .where = "Distil",
                     .why = "its Loss::output is undefined",
                     .fix = "Return Loss{.value = loss, .output = logits}."});
}

FRUGAL_INLINE void refuse_no_teacher() {
  throw SettingsError({.what = "Distil has no teacher",
                       .where = "Distil::teachers",
                       .why = "the batch has no teacher's outputs, either",
                       .fix = "Give Distil a Teacher, or train on a CachedTeacher's source."});
}

}  // namespace frugal::detail
