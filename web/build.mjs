// Builds the page into dist: a script, a style sheet and an icon, whose names
// contain hashes of their contents, and index.html, which refers to them. The
// same sources give the same files.
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const { outputFiles } = await build({
	entryPoints: ["src/main.tsx"], outdir: "out", bundle: true, minify: true, write: false, format: "esm", target: ["es2022"],
	jsx: "automatic", jsxImportSource: "preact", legalComments: "none", charset: "utf8", logLevel: "warning",
});
const found = (end) => outputFiles.find((file) => file.path.endsWith(end)).contents;
const names = {};
rmSync("dist", { recursive: true, force: true });
mkdirSync("dist");
for (const [place, end, content] of [["SCRIPT", "js", found(".js")], ["STYLE", "css", found(".css")], ["ICON", "svg", readFileSync("src/icon.svg")]]) {
	names[place] = `${createHash("sha256").update(content).digest("hex").slice(0, 12)}.${end}`;
	writeFileSync(`dist/${names[place]}.gz`, gzipSync(content, { level: 9 }));
}
const index = readFileSync("src/index.html", "utf8").replace(/SCRIPT|STYLE|ICON/g, (place) => names[place]);
writeFileSync("dist/index.html.gz", gzipSync(index, { level: 9 }));

// The parser of #SBATCH lines alone, which tests compare with schedctl's.
await build({ entryPoints: ["src/core/sbatch.ts"], outfile: "testdata/sbatch.mjs", bundle: true, minify: true, format: "esm", target: ["es2022"], charset: "utf8", logLevel: "warning" });

for (const name of Object.keys(JSON.parse(readFileSync("package.json", "utf8")).dependencies)) {
	mkdirSync(`licences/${name}`, { recursive: true });
	copyFileSync(`node_modules/${name}/LICENSE`, `licences/${name}/LICENSE`);
}

// The hash of the sources, with which a Go test finds out that the result is out of date.
const sources = ["build.mjs", "package.json", "package-lock.json", "tsconfig.json", ...readdirSync("src", { recursive: true, withFileTypes: true }).filter((e) => e.isFile()).map((e) => `${e.parentPath}/${e.name}`)].sort();
const hash = createHash("sha256");
for (const name of sources) hash.update(`${createHash("sha256").update(readFileSync(name)).digest("hex")}  ${name}\n`);
writeFileSync("dist/SOURCES", hash.digest("hex") + "\n");
