// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gloo::transport {

class Device;
class UnboundBuffer;

}  // namespace gloo::transport
