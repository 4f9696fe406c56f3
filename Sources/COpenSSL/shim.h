/* What the Swift importer needs of OpenSSL 3. _GNU_SOURCE comes first, as in every C module here. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#ifndef PINFOLD_COPENSSL_H
#define PINFOLD_COPENSSL_H
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#endif
