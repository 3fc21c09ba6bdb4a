// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/model_config.hpp>

namespace frugal::detail {

// A config.json may ask for a computation that the model does not do. Its weights would fit, and the
// outputs be wrong.

/// SettingsError if the config has another text under a key.
void require_config(ModelConfig const& config, char const* key, char const* text);

/// SettingsError if the config has true, or for `standard` false, under a key.
void require_config_off(ModelConfig const& config, char const* key, bool standard = false);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/models/config.ipp>
#endif
