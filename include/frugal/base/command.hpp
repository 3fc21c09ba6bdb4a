// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/child_process.hpp>

#include <map>
#include <string>
#include <vector>

namespace frugal {

/// A program and its arguments. It is started without a shell, so names are never interpreted.
using Command = std::vector<std::string>;

namespace detail {

/// The command with {key} replaced in every argument, also within one.
Command filled(Command command, std::map<std::string, std::string> const& values);

std::string words_of(Command const& command);

/// Runs a command and waits for it. Empty if it exits with 0 in time; otherwise why it failed,
/// which quotes the end of its output.
std::string failure_of(Command const& command, ProcessLimits const& limits = {});

/// Runs a command; throws StoreError if it fails.
void run_command(Command const& command, ProcessLimits const& limits = {});

}  // namespace detail

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/base/command.ipp>
#endif
