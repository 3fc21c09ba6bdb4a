// SPDX-License-Identifier: Apache-2.0
// needs: torch recipes
// expect: frugal: a search compares the members of the objective, of policies and of the architecture between its workers, and cannot see those of this struct: it or a member has a base class, an array of C, a reference, or more than 20 members.
#include <frugal/search/job_identity.hpp>

#include <array>
#include <string>
#include <tuple>

struct Weighted {
#ifdef FRUGAL_REJECT
  double weights[3] = {1, 2, 3};
#else
  std::array<double, 3> weights{1, 2, 3};
#endif
};
std::string const text = frugal::detail::fixed_members(std::tuple<>{}, Weighted{});
