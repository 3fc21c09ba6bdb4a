// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: this Spot has no source of preemption notices. Write Spot<SigtermSave>, Spot<Notices<Aws>> or Spot<SigtermSave, Notices<Aws>>.
#include <frugal/policy/spot.hpp>

frugal::Spot<frugal::SigtermSave> good;
#ifdef FRUGAL_REJECT
frugal::Spot<frugal::Grace<30>> bad;
#endif
