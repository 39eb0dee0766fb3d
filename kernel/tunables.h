/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HOISTWAY_TUNABLES_H
#define HOISTWAY_TUNABLES_H

#include "hoistway_iosched.h"

int hw_tunables_init(struct hw_type *type);

#endif
