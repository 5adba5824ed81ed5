// Must not compile: the compiler says what the learning rate is called here.
#include "nn/optimizers.h"

const nitinol::nn::AdamOptions options = {.lr = 1e-3};
