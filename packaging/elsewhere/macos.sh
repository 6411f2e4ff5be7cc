#!/bin/sh
# macOS: an application and a disk image of the frozen program. NOT TRIED: nobody has run this yet.
# On a Mac with Apple silicon, in a Python that has Tandem's packages and PyInstaller:
#   python packaging/build.py --no-smoke
#   packaging/elsewhere/macos.sh 0.1.0 ["Developer ID Application: NAME (TEAM)"] [NOTARY_PROFILE]
# Without a name nothing is signed: open it by Control-click the first time, or Gatekeeper refuses it.
# The profile: xcrun notarytool store-credentials NOTARY_PROFILE --apple-id … --team-id … --password …
set -eu

version=${1:?"which version?"}
signer=${2:-}
profile=${3:-}
root=$(cd "$(dirname "$0")/../.." && pwd)
app="$root/dist/Tandem.app"
image="$root/dist/tandem-$version-arm64.dmg"

rm -rf "$app" "$image"
mkdir -p "$app/Contents/MacOS" "$app/Contents/Resources"
cp -R "$root/dist/tandem/" "$app/Contents/MacOS/"

icons=$(mktemp -d)/tandem.iconset
mkdir "$icons"
for size in 16 32 128 256 512; do
    sips -s format png -z $size $size "$root/resources/icons/tandem.svg" --out "$icons/icon_${size}x$size.png"
done
iconutil --convert icns --output "$app/Contents/Resources/tandem.icns" "$icons"

cat > "$app/Contents/Info.plist" <<END
<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
    <key>CFBundleExecutable</key><string>tandem</string>
    <key>CFBundleIconFile</key><string>tandem</string>
    <key>CFBundleIdentifier</key><string>app.tandem.Tandem</string>
    <key>CFBundleName</key><string>Tandem</string>
    <key>CFBundlePackageType</key><string>APPL</string>
    <key>CFBundleShortVersionString</key><string>$version</string>
    <key>CFBundleVersion</key><string>$version</string>
    <key>LSMinimumSystemVersion</key><string>12.0</string>
    <key>NSHighResolutionCapable</key><true/>
    <key>NSLocalNetworkUsageDescription</key>
    <string>Tandem finds the other laptops in your network, and trains with those that you pair.</string>
    <key>NSBonjourServices</key><array><string>_tandem._tcp</string></array>
</dict>
</plist>
END

if [ -n "$signer" ]; then
    # TensorFlow compiles while it trains, and loads libraries that others have signed.
    rights=$(mktemp)
    cat > "$rights" <<END
<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
    <key>com.apple.security.cs.allow-jit</key><true/>
    <key>com.apple.security.cs.allow-unsigned-executable-memory</key><true/>
    <key>com.apple.security.cs.disable-library-validation</key><true/>
</dict>
</plist>
END
    find "$app" -type f \( -name '*.so' -o -name '*.dylib' \) -print0 |
        xargs -0 codesign --force --timestamp --options runtime --sign "$signer"
    codesign --force --timestamp --options runtime --entitlements "$rights" --sign "$signer" "$app"
    codesign --verify --deep --strict "$app"
fi

folder=$(mktemp -d)
cp -R "$app" "$folder/"
ln -s /Applications "$folder/Applications"
hdiutil create -volname Tandem -srcfolder "$folder" -format ULFO "$image"

if [ -n "$profile" ]; then
    codesign --force --timestamp --sign "$signer" "$image"
    xcrun notarytool submit "$image" --keychain-profile "$profile" --wait
    xcrun stapler staple "$image"
fi
echo "$image"
