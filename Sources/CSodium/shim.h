/* libsodium as it is. _GNU_SOURCE comes first, as in every C module here. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#ifndef PINFOLD_CSODIUM_H
#define PINFOLD_CSODIUM_H
#include <sodium.h>
#endif
