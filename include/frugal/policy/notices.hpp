// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/cluster/aws.hpp>    // IWYU pragma: keep
#include <frugal/cluster/azure.hpp>  // IWYU pragma: keep
#include <frugal/cluster/gcp.hpp>    // IWYU pragma: keep
#include <frugal/cluster/notice_poller.hpp>

#include <string>

// Needs libcurl: FRUGAL_NOTICES=ON, and the target frugal::notices.
namespace frugal {

/// An option of Spot: hears from the cloud itself that the machine will be taken, where nothing
/// sends the process a signal. `Spot<SigtermSave, Grace<120>, Notices<Aws>>`; also Gcp and Azure.
///
/// A thread of its own asks the metadata service; a step looks at a flag. See
/// cluster/notice_poller.hpp for what goes wrong and what then happens: training goes on.
template <class Provider>
struct Notices {
  Provider provider{};
  NoticePolling polling{};

  class Watch {
   public:
    explicit Watch(Notices const& settings) : poller_(settings.provider, settings.polling) {}

    bool pending() const { return poller_.pending(); }
    /// Who said it, and in which words.
    std::string text() const {
      auto const notice = poller_.seen();
      return notice ? notice->source + ": " + notice->text : std::string();
    }
    /// Why nothing may be heard, if so: the cloud does not answer.
    std::string warning() const { return poller_.status().warning; }
    /// The run is saved: the machine may go, for those clouds that want to know (Azure, if set).
    void saved() { poller_.acknowledge(); }

   private:
    NoticePoller<Provider> poller_;
  };
};

}  // namespace frugal
