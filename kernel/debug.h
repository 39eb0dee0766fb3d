/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HOISTWAY_DEBUG_H
#define HOISTWAY_DEBUG_H

#include "hoistway_iosched.h"

extern const struct blk_mq_debugfs_attr hw_debugfs_attrs[];

#endif
