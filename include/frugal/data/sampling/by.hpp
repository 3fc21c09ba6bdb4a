// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace frugal {

/// What a policy sorts or draws samples by: `Curriculum<By<Length>>`, `Importance<By<Loss>>`.
template <class Score>
struct By {
  using score = Score;
};

namespace detail {

template <class T>
inline constexpr bool is_by = false;
template <class Score>
inline constexpr bool is_by<By<Score>> = true;

}  // namespace detail

}  // namespace frugal
