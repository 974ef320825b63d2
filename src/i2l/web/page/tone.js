// What kind of picture it is, so that the dark theme shows none as a glaring white sheet.

const SIDE = 48;
const WHITE = 170; // mean brightness from which on a picture is dark ink on light paper
const GREY = 40; // most colour of a picture that can be inverted and look the same

// "paper" for dark ink on white, which is inverted in the dark; "night" for what is dark already; "photo" for all else, which is dimmed.
export const toneOf = (image) => {
  const canvas = new OffscreenCanvas(SIDE, SIDE);
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.fillStyle = "#fff";
  context.fillRect(0, 0, SIDE, SIDE);
  context.drawImage(image, 0, 0, SIDE, SIDE);
  const { data } = context.getImageData(0, 0, SIDE, SIDE);
  let [sum, colour] = [0, 0];
  for (let place = 0; place < data.length; place += 4) {
    const [red, green, blue] = [data[place], data[place + 1], data[place + 2]];
    sum += (red + green + blue) / 3;
    colour = Math.max(colour, Math.max(red, green, blue) - Math.min(red, green, blue));
  }
  const mean = sum / (SIDE * SIDE);
  return colour > GREY ? "photo" : mean > WHITE ? "paper" : mean < 255 - WHITE ? "night" : "photo";
};

// Marks an image with its tone as soon as it has come.
export const tinted = (image) => {
  image.addEventListener("load", () => { image.dataset.tone = toneOf(image); }, { once: true });
  return image;
};
