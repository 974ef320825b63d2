"""im2markup's matcher step by step, as slow as its definition: strings of 0 and 1, full matrices."""


def columns_of(pixels, height):
    rows, width = pixels.shape
    return [
        "".join("1" if y < rows and pixels[y, x] <= 128 else "0" for y in range(height)) for x in range(width)
    ]


def symbols_of(target, prediction):
    """A column takes the symbol of the first distinct column seen that differs in fewer than 5 pixels."""
    symbol, seen = {}, []
    for column in [*target, *prediction]:
        if column in symbol:
            continue
        for earlier in seen:
            if sum(a != b for a, b in zip(column, earlier, strict=True)) < 5:
                symbol[column] = symbol[earlier]
                break
        else:
            symbol[column] = len(seen)
            seen.append(column)
    return [symbol[column] for column in target], [symbol[column] for column in prediction]


def distance_table(first, second):
    table = [[i + j if i * j == 0 else 0 for j in range(len(second) + 1)] for i in range(len(first) + 1)]
    for i in range(1, len(first) + 1):
        for j in range(1, len(second) + 1):
            table[i][j] = min(
                table[i - 1][j] + 1,
                table[i][j - 1] + 1,
                table[i - 1][j - 1] + (first[i - 1] != second[j - 1]),
            )
    return table


def edit_blocks(first, second):
    """(kind, target span) of each block of python-Levenshtein 0.12's opcodes that is not equal."""
    start = 0
    while start < min(len(first), len(second)) and first[start] == second[start]:
        start += 1
    first, second = first[start:], second[start:]
    while first and second and first[-1] == second[-1]:
        first, second = first[:-1], second[:-1]
    table = distance_table(first, second)
    i, j, going, steps = len(first), len(second), None, []
    while i or j:
        can_insert = j and table[i][j] == table[i][j - 1] + 1
        can_delete = i and table[i][j] == table[i - 1][j] + 1
        if going == "insert" and can_insert:
            step = "insert"
        elif going == "delete" and can_delete:
            step = "delete"
        elif i and j and first[i - 1] == second[j - 1]:
            step = "equal"
        elif i and j and table[i][j] == table[i - 1][j - 1] + 1:
            step = "replace"
        else:
            step = "insert" if can_insert else "delete"
        going = step
        i -= step != "insert"
        j -= step != "delete"
        steps.append(step)
    blocks = []
    for previous, step in zip([None, *reversed(steps)], reversed(steps)):  # noqa: B905 - one longer on purpose
        if step != previous:
            blocks.append([step, 0])
        blocks[-1][1] += step != "insert"
    return [(kind, span) for kind, span in blocks if kind != "equal"]


def no_long_block(first, second):
    return all(span < 5 for _, span in edit_blocks(first, second))


def match_by_definition(target, prediction):
    """(match with spaces, match without, edit distance of the columns, larger width)."""
    height = max(target.shape[0], prediction.shape[0])
    first, second = columns_of(target, height), columns_of(prediction, height)
    distance = distance_table(first, second)[-1][-1]
    with_spaces = distance == 0 or no_long_block(*symbols_of(first, second))
    inked = [column for column in first if "1" in column], [column for column in second if "1" in column]
    if not inked[0] or not inked[1]:
        without_spaces = len(inked[0]) == len(inked[1])
    else:
        without_spaces = no_long_block(*symbols_of(*inked))
    return with_spaces, without_spaces, distance, max(len(first), len(second))
