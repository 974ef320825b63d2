"""The paper's equations, written out in float64 NumPy as plainly as possible: the measure in tests."""

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def weights(model):
    return {name: tensor.detach().double().numpy() for name, tensor in model.state_dict().items()}


def convolve(grid, kernel, bias):
    """VALID 3x3 convolution of (C, H, W) by (O, C, 3, 3)."""
    _, height, width = grid.shape
    out = np.empty((kernel.shape[0], height - 2, width - 2))
    for row in range(height - 2):
        for column in range(width - 2):
            patch = grid[:, row : row + 3, column : column + 3]
            out[:, row, column] = (kernel * patch).sum((1, 2, 3)) + bias
    return out


def encode(w, config, pixels):
    """One canvas (H + 2, W + 2) to the sequence a, (L, D), row by row."""
    grid = ((pixels.astype(np.float64) - 127.5) / 255)[None]
    for index in range(len(config.channels)):
        if index > 0:
            grid = np.pad(grid, ((0, 0), (1, 1), (1, 1)))
        prefix = f"encoder.convolutions.{index}."
        grid = np.tanh(convolve(grid, w[prefix + "weight"], w[prefix + "bias"]))
        channels, height, width = grid.shape
        grid = grid.reshape(channels, height // 2, 2, width // 2, 2).max((2, 4))
    rows, columns = config.grid
    sequence = []
    for row in range(rows):
        for column in range(columns):
            parts = [
                grid[:, row * config.pool_rows + i, column * config.pool_columns + j]
                for i in range(config.pool_rows)
                for j in range(config.pool_columns)
            ]
            sequence.append(np.concatenate(parts))
    return np.array(sequence)


def layer(w, prefix, x):
    return w[prefix + ".weight"] @ x + w[prefix + ".bias"]


def full_attention(w, prefix, a, h):
    """alpha_t = f_att(a; H_{t-1}): one MLP over the concatenated flattened image and state."""
    kernel = np.concatenate([w[prefix + "image.weight"], w[prefix + "state.weight"]], axis=1)
    first = np.tanh(kernel @ np.concatenate([a.ravel(), h]) + w[prefix + "image.bias"])
    return softmax(layer(w, prefix + "score", np.tanh(layer(w, prefix + "hidden", first))))


def shared_attention(w, prefix, a, h):
    """alpha_{t,l} = MLP(a_l; H_{t-1}), the same MLP for every location."""
    kernel = np.concatenate([w[prefix + "location.weight"], w[prefix + "state.weight"]], axis=1)
    scores = []
    for a_l in a:
        first = np.tanh(kernel @ np.concatenate([a_l, h]) + w[prefix + "location.bias"])
        scores.append(layer(w, prefix + "score", np.tanh(layer(w, prefix + "hidden", first)))[0])
    return softmax(np.array(scores))


def lstm(w, prefix, x, h, c, clip=None):
    """The peephole LSTM; gate order i, g, f, o; forget bias 1."""
    kernel = np.concatenate([w[prefix + "input_kernel"], w[prefix + "recurrent_kernel"]], axis=1)
    i, g, f, o = np.split(kernel @ np.concatenate([x, h]) + w[prefix + "bias"], 4)
    w_ci, w_cf, w_co = w[prefix + "peepholes"]
    i = sigmoid(i + w_ci * c)
    f = sigmoid(f + w_cf * c + 1)
    c = f * c + i * np.tanh(g)
    if clip is not None:
        c = np.clip(c, -clip, clip)
    o = sigmoid(o + w_co * c)
    return o * np.tanh(c), c


def calstm(w, prefix, config, x, hs, cs, a):
    """One step of attention and LSTM stack; gives H_t, z_t, alpha_t and the new states."""
    attend = full_attention if config.attention == "full" else shared_attention
    alpha = attend(w, prefix + "attention.", a, hs[-1])
    z = alpha @ a
    if config.beta_gate:
        z = sigmoid(layer(w, prefix + "beta", hs[-1])) * z
    stack_input = np.concatenate([x, z])
    inputs, new_hs, new_cs = stack_input, [], []
    for q in range(config.lstm_layers):
        if q > 0 and config.lstm_skip:
            inputs = np.concatenate([inputs, stack_input])
        h, c = lstm(w, f"{prefix}stack.layers.{q}.", inputs, hs[q], cs[q], config.cell_clip)
        new_hs.append(h)
        new_cs.append(c)
        inputs = h
    return inputs, z, alpha, new_hs, new_cs


def initial_state(w, config, a):
    """Hidden and cell states per layer: tanh layers over the flattened image, or zero."""
    layers = config.lstm_layers
    if not config.init_model:
        return [np.zeros(config.lstm_units)] * layers, [np.zeros(config.lstm_units)] * layers
    hidden = np.tanh(layer(w, "init_model.hidden", a.ravel()))
    parts = [np.tanh(layer(w, f"init_model.parts.{index}", hidden)) for index in range(2 * layers)]
    return parts[1::2], parts[0::2]  # stored as cell, hidden of each layer


def read(w, config, pixels, token_ids, bos=1):
    """Logits (T, K) and attention (T, rows, columns) of one sample with the true words fed back."""
    a = encode(w, config, pixels)
    hs, cs = initial_state(w, config, a)
    logits, attention = [], []
    for word in [bos, *token_ids[:-1]]:
        ey = w["embedding.weight"][word]
        h, z, alpha, hs, cs = calstm(w, "cell.", config, ey, hs, cs, a)
        inputs = np.concatenate([ey, h, z]) if config.output_skips else h
        first = np.tanh(layer(w, "output.first", inputs))
        logits.append(layer(w, "output.score", np.tanh(layer(w, "output.second", first))))
        attention.append(alpha.reshape(config.grid))
    return np.array(logits), np.array(attention)


def objective(logits, attention, token_ids, lengths, regularized, settings):
    """J over a batch of lists: mean over each sample's words, then over the batch, plus the penalties."""
    sample_losses, ases, aaes = [], [], []
    for scores, alpha, targets, tau in zip(logits, attention, token_ids, lengths, strict=True):
        total = 0.0
        for t in range(tau):
            log_p = np.log(softmax(scores[t]))
            smoothed = (1 - settings.label_smoothing) * log_p[targets[t]]
            total -= smoothed + settings.label_smoothing * log_p.mean()
        sample_losses.append(total / tau)
        alpha_l = alpha[:tau].reshape(tau, -1).sum(0)
        locations = len(alpha_l)
        ase = ((alpha_l - tau / locations) ** 2).sum()
        ases.append(100 * ase / (tau**2 * (locations - 1) / locations))
        aae = abs(alpha_l - tau / locations).sum()
        aaes.append(100 * aae / (2 * tau * (locations - 1) / locations))
    log_loss, ase_n, aae_n = np.mean(sample_losses), np.mean(ases), np.mean(aaes)
    regularization = sum((weight**2).sum() for weight in regularized) / 2
    total = log_loss + settings.l2 * regularization
    total += settings.alpha_penalty * abs(ase_n - settings.ase_target)
    return {"total": total, "log_loss": log_loss, "ase": ase_n, "aae": aae_n}
