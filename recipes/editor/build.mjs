// Bundles CodeMirror into one file for the page; run by build.sh.
import { readFile, writeFile } from "node:fs/promises";
import { build } from "esbuild";

// CodeMirror writes its styles into a <style> element, which our Content-Security-Policy forbids, and into a constructed
// style sheet only within a shadow root. Constructed ones work in a document just as well.
const OWN_STYLES = "!root.head && root.adoptedStyleSheets";
const constructedStyles = {
  name: "constructed-styles",
  setup({ onLoad }) {
    onLoad({ filter: /style-mod\.js$/ }, async ({ path }) => {
      const source = await readFile(path, "utf8");
      if (!source.includes(OWN_STYLES)) throw new Error("style-mod has changed: look at how it adds its styles");
      return { contents: source.replace(OWN_STYLES, "root.adoptedStyleSheets") };
    });
  },
};

const [target] = process.argv.slice(2);
const { packages } = JSON.parse(await readFile("package-lock.json", "utf8"));
const versions = Object.entries(packages).filter(([name, { dev }]) => name && !dev)
  .map(([name, { version }]) => `${name.replace("node_modules/", "")} ${version}`).join(", ");
await build({
  entryPoints: ["entry.js"], bundle: true, minify: true, format: "esm", target: "es2022", outfile: `${target}/codemirror.min.js`,
  legalComments: "none", plugins: [constructedStyles], banner: { js: `/* CodeMirror, MIT licence, see LICENSE. Made by recipes/editor/build.sh of ${versions}. */` },
});
await writeFile(`${target}/LICENSE`, await readFile("node_modules/@codemirror/state/LICENSE"));
